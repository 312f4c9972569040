-- What a person does in Neovim, step by step; what was seen goes to a file as JSON. See test_neovim.py.
local seen = {}

local function await(what) return vim.wait(60000, what, 20) end

local function ask(method, extra)
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, "utf-16"), extra or {})
  local answers = vim.lsp.buf_request_sync(0, method, params, 60000) or {}
  for _, answer in pairs(answers) do return answer.result end
end

local function open(file)
  vim.cmd("edit " .. vim.fn.fnameescape(file))
  await(function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)
  return vim.api.nvim_get_current_buf()
end

-- Choose a paper of the list at a place: its key goes into the text, its entry into the bibliography.
local function choose(buffer, key)
  local item
  await(function()
    for _, one in ipairs((ask("textDocument/completion", { context = { triggerKind = 1 } }) or {}).items or {}) do
      if one.label == key then item = one end
    end
    return item ~= nil
  end)
  if not item then return nil end
  vim.lsp.util.apply_text_edits({ item.textEdit }, buffer, "utf-16")
  if item.command then vim.lsp.buf_request_sync(0, "workspace/executeCommand", item.command, 60000) end
  return { detail = item.detail, command = item.command and item.command.command }
end

local function lines(buffer) return vim.api.nvim_buf_get_lines(buffer, 0, -1, false) end

for _, step in ipairs(vim.fn.json_decode(table.concat(vim.fn.readfile(vim.env.PLAN), "\n"))) do
  local buffer = open(step.file)
  vim.api.nvim_win_set_cursor(0, { step.line, step.column })
  local told = { file = step.file }
  if step.key then
    local bib = vim.fn.bufadd(step.bibliography)
    vim.fn.bufload(bib)
    local before, entries = lines(buffer), lines(bib)
    told.chosen = choose(buffer, step.key) or false
    await(function() return #lines(bib) > #entries end)
    told.line, told.added = lines(buffer)[step.line], vim.list_slice(lines(bib), #entries + 1)
    vim.api.nvim_buf_call(bib, function() vim.cmd("silent undo") end)
    vim.cmd("silent undo")
    told.undone = vim.deep_equal(lines(buffer), before) and vim.deep_equal(lines(bib), entries)
  end
  local hover = ask("textDocument/hover")
  told.hover = hover and hover.contents.value or ""
  await(function() return #vim.diagnostic.get(buffer) > 0 or not step.code end)
  local here = vim.tbl_map(function(d) return d.user_data.lsp end, vim.diagnostic.get(buffer, { lnum = step.line - 1 }))
  told.codes = vim.tbl_map(function(d) return d.code end, here)
  local range = vim.lsp.util.make_range_params(0, "utf-16").range
  local given = vim.tbl_map(function(d)
    return { range = vim.lsp.diagnostic and d.range or range, code = d.code, message = d.message or "", source = "citerec" }
  end, here)
  local actions = ask("textDocument/codeAction", { range = range, context = { diagnostics = given } }) or {}
  told.fixes = vim.tbl_map(function(action) return action.title end, actions)
  seen[#seen + 1] = told
  vim.cmd("silent wall")
end
vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.SEEN)
vim.cmd("qa!")
