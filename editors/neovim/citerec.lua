-- citerec for Neovim 0.7 and newer. Put this file into ~/.config/nvim/plugin/.
-- Settings, before it is read: vim.g.citerec = { cmd = {...}, corpus = "...", registry = "...", venue = "..." }

local settings = vim.g.citerec or {}
local languages = { tex = "latex", plaintex = "tex", bib = "bibtex", markdown = "markdown", quarto = "quarto",
                    typst = "typst" }  -- file type -> language of the protocol

for ending, language in pairs({ typ = "typst", qmd = "quarto" }) do
  vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, { pattern = "*." .. ending, callback = function()
    if vim.bo.filetype == "" or vim.bo.filetype == "sql" then vim.bo.filetype = language end
  end })
end

-- The folder of the draft: where the repository or the book begins, else the folder of the file.
local function root_of(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  for _, mark in ipairs({ "_quarto.yml", "myst.yml" }) do
    local found = vim.fn.findfile(mark, folder .. ";")
    if found ~= "" then return vim.fn.fnamemodify(found, ":p:h") end
  end
  local git = vim.fn.finddir(".git", folder .. ";")
  return git ~= "" and vim.fn.fnamemodify(git, ":p:h:h") or folder
end

-- What a chosen paper still needs: its entry in the bibliography, where that lacks it.
local function chosen(client, buffer)
  vim.api.nvim_create_autocmd("CompleteDone", { buffer = buffer, callback = function()
    local item = vim.tbl_get(vim.v.completed_item, "user_data", "nvim", "lsp", "completion_item")
    if item and item.command then client.request("workspace/executeCommand", item.command, nil, buffer) end
  end })
end

local function attached(client, buffer)
  local function map(keys, act) vim.keymap.set("n", keys, act, { buffer = buffer }) end
  map("K", vim.lsp.buf.hover)
  map("gd", vim.lsp.buf.definition)
  map("grr", vim.lsp.buf.references)
  map("grn", vim.lsp.buf.rename)
  map("gra", vim.lsp.buf.code_action)
  if vim.lsp.completion then  -- Neovim 0.11 and newer
    vim.lsp.completion.enable(true, client.id, buffer, { autotrigger = true })
  else
    vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"  -- CTRL-X CTRL-O
    chosen(client, buffer)
  end
end

local started = {}  -- folder of a draft -> client

local function start(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local root = root_of(file)
  local config = {
    name = "citerec", cmd = settings.cmd or { "citerec", "lsp" }, root_dir = root,
    init_options = { corpus = settings.corpus, registry = settings.registry, venue = settings.venue,
                     patience = not vim.lsp.completion and 5 or nil },  -- seconds; a list that is not asked again
    get_language_id = function(_, filetype) return languages[filetype] end,
    on_attach = attached,
    on_exit = function() started[root] = nil end,
  }
  if vim.lsp.start then return vim.lsp.start(config, { bufnr = buffer }) end
  started[root] = started[root] or vim.lsp.start_client(config)
  if started[root] then vim.lsp.buf_attach_client(buffer, started[root]) end
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = vim.tbl_keys(languages),
  callback = function(event) start(event.buf) end,
})
