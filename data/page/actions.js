async function copy(text) {
  try { await navigator.clipboard.writeText(text); }
  catch {
    const field = document.createElement("textarea");
    field.value = text; document.body.append(field); field.select(); document.execCommand("copy"); field.remove();
  }
}
function led(root, box, model) {
  root.querySelector(".citerec-led")?.remove();
  if (!root.querySelector("[data-act=select]:checked")) return;
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "citerec-act citerec-led", textContent: "Export selected" });
  const lead = (tries) => {
    const menu = root.querySelector(".citerec-export")?.closest(".widget-vbox").querySelector("select");
    if (menu?.offsetParent) menu.focus();
    else if (tries) setTimeout(lead, 50, tries - 1);  // Python shows it soon
  };
  button.onclick = () => { model.send({ act: "export" }); lead(100); };
  box.closest("label").after(button);
}
async function clicked(event, root, model) {
  const node = event.target.closest("[data-act]");
  if (!node) return;
  const told = { ...node.dataset }, said = node.textContent, card = node.closest(".citerec-card");
  if (told.act === "copy") {
    await copy(card.querySelectorAll(".citerec-entry")[told.nth].textContent);
    node.textContent = "Copied"; setTimeout(() => { node.textContent = said; }, 1500);
    return;
  }
  const place = told.act === "similar" && card.querySelector("[data-slot]");
  if (place?.innerHTML) { place.innerHTML = ""; return; }
  if (node.hasAttribute("aria-pressed")) {
    told.pressed = node.getAttribute("aria-pressed") !== "true";
    const others = root.querySelectorAll(`[data-act="${told.act}"]`);  // only one stays pressed
    for (const other of others) other.setAttribute("aria-pressed", "false");
    node.setAttribute("aria-pressed", String(told.pressed));
  }
  if (node.type === "checkbox") { told.pressed = node.checked; led(root, node, model); }
  if (told.act === "exclude") root.querySelector(".citerec-text textarea")?.focus();  // this card will be gone
  model.send(told);
}

function opens(list) { list.closest(".citerec-chooser")?.querySelector(".citerec-opens")?.click(); }
const CONTROLS = "button, summary, a, select, input[type=checkbox], [role=button]";
function neighbour(node, root, step) {
  const cards = [...root.querySelectorAll(".citerec-card[data-paper]")];
  const next = cards[cards.indexOf(node.closest(".citerec-card[data-paper]")) + step];
  const twin = [...next?.querySelectorAll(CONTROLS) ?? []].find((other) =>
    other.tagName === node.tagName && other.title === node.title && other.dataset.act === node.dataset.act);
  return twin ?? next?.querySelector(CONTROLS);
}
function listed(key, node, root) {  // keys of a list of papers; whether it is one
  const cards = [...root.querySelectorAll(".citerec-card[data-paper]")].filter((card) => card.checkVisibility());
  const card = node.closest?.(".citerec-card[data-paper]"), box = (other) => other?.querySelector("[data-act=select]");
  const ranked = cards.find((other) => other.querySelector(".citerec-rank")?.textContent === key);
  const next = cards[Math.max(0, cards.indexOf(card) + (key === "k" ? -1 : 1))];
  if (/^[1-9]$/.test(key) && box(ranked)) { box(ranked).focus(); box(ranked).click(); }
  else if ((key === "j" || key === "k") && box(next)) box(next).focus();
  else if (key === "x" && box(card)) box(card).click();
  else if (key === "o" && card?.closest(".citerec-compact")) card.classList.toggle("citerec-open");
  else return false;
  return true;
}
function typed(event, root, model) {
  const node = event.target, key = event.key, enter = key === "Enter", held = event.ctrlKey || event.metaKey;
  if (!(root.closest(".citerec-views") ?? root).contains(node)) return;
  const first = key === "Escape" && root.contains(node) && node.matches(".citerec-text textarea") &&
    root.querySelector(".citerec-card[data-paper] [data-act=select]");
  if (first) { event.preventDefault(); event.stopImmediatePropagation(); first.focus(); return; }
  if (enter && root.contains(node) && node.matches(".citerec-chooser select")) opens(node);
  const mine = root.contains(node), step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (enter && held && mine && node.matches(".citerec-text textarea")) {
    event.preventDefault(); event.stopImmediatePropagation();
    model.send({ act: "run", text: node.value });
  } else if (enter && mine && node.matches("input[type=text]")) {
    node.dispatchEvent(new Event("change", { bubbles: true }));
  } else if (node.matches(CONTROLS) && !held && !event.altKey && key !== "Escape") {
    event.stopPropagation();
    const card = mine && step && !node.matches("select") && node.closest(".citerec-card[data-paper]");
    if (mine && !node.matches("select") && listed(key, node, root)) event.preventDefault();
    const pressed = mine && node.matches("[role=button]") && (enter || key === " ");
    if (card || pressed) event.preventDefault();
    if (card) neighbour(node, root, step)?.focus();
    if (pressed) node.click();
  }
}

function kept(root) {
  let last = null;
  const there = (node) => node.isConnected && node.checkVisibility();
  const note = (event) => { last = event.type === "focusin" && root.contains(event.target) ? event.target : null; };
  const back = () => {
    const now = document.activeElement;
    if (!last || (now && now !== document.body && !now.disabled && there(now))) return;
    const like = (node) => there(node) && node.title === last.title && node.textContent === last.textContent;
    const found = (selector, fits) => [...root.querySelectorAll(selector)].find(fits);
    const next = there(last) ? last : found(last.tagName, like) ?? found("button.mod-primary", there);
    if (next && !next.disabled) next.focus({ preventScroll: true });
  };
  const plain = () => {  // "Add PDFs (0)" counts the files that were chosen last, which reads as if there were none
    for (const { lastChild: text } of root.querySelectorAll(".widget-upload")) {
      if (/ \(\d+\)$/.test(text?.data)) text.data = text.data.replace(/ \(\d+\)$/, "");
    }
  };
  plain();
  const watch = new MutationObserver(() => { back(); plain(); });
  const what = { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled", "style"] };
  watch.observe(root, what);
  for (const type of ["focusin", "pointerdown"]) document.addEventListener(type, note, true);
  return () => {
    watch.disconnect();
    for (const type of ["focusin", "pointerdown"]) document.removeEventListener(type, note, true);
  };
}

function rewritten(root) {  // on the page without a notebook, what was written outlives a reload
  if (!window.citerecKeeps) return () => {};
  const views = root.closest(".citerec-views"), first = views?.querySelector(".citerec-view") === root;
  const at = [...views?.querySelectorAll(".citerec-view") ?? []].indexOf(root), store = window.sessionStorage;
  const fields = () => [...root.querySelectorAll("textarea, input[type=text]")].filter((field) =>
    field.placeholder && !field.closest(".citerec-export"));
  const name = (field) => `citerec ${at} ${field.placeholder} ${field.closest(".widget-text")?.textContent ?? ""}`;
  const keep = () => { for (const field of fields()) store.setItem(name(field), field.value); };
  const note = (event) => {
    if (event.type === "input") keep();
    const head = first && event.target.closest?.(".citerec-head");
    if (head && event.target.matches("select"))
      store.setItem("citerec corpus", event.target.selectedOptions[0]?.textContent ?? "");
    if (head && event.target.matches("button")) store.setItem("citerec view", event.target.textContent);
  };
  const told = (node) => { for (const type of ["input", "change"]) node.dispatchEvent(new Event(type, { bubbles: true })); };
  for (const field of fields()) {
    const before = store.getItem(name(field));
    if (before && !field.value) { field.value = before; told(field); }
  }
  if (first) {
    const list = views.querySelector(".citerec-head select"), before = store.getItem("citerec corpus");
    const option = [...list?.options ?? []].find((one) => one.textContent === before);
    if (option && !option.selected) { option.selected = true; told(list); }
    [...views.querySelectorAll(".citerec-head button")].find((one) =>
      one.textContent === store.getItem("citerec view"))?.click();
  }
  const where = first ? views : root;
  for (const type of ["input", "change", "click"]) where.addEventListener(type, note);
  window.addEventListener("pagehide", keep);  // what Python has written, as an example, is kept as well
  return () => {
    for (const type of ["input", "change", "click"]) where.removeEventListener(type, note);
    window.removeEventListener("pagehide", keep);
  };
}

const LARGEST = 200 * 2 ** 20;  // bytes of the files of one drop
function brings(event, root) {
  const there = root.querySelector(".widget-upload")?.checkVisibility();
  return there && event.dataTransfer?.types.includes("Files");
}
function dragged(event, root) {
  if (!brings(event, root)) return;
  event.preventDefault();
  root.classList.toggle("citerec-drop", event.type === "dragover");
}
async function dropped(event, root, model) {
  if (!brings(event, root)) return;
  event.preventDefault();
  root.classList.remove("citerec-drop");
  const files = [...event.dataTransfer.files], read = [], refused = [];
  let room = LARGEST;
  for (const file of files) {
    if (file.name.toLowerCase().endsWith(".pdf") && file.size <= room) { read.push(file); room -= file.size; }
    else refused.push(file.name);
  }
  const contents = await Promise.all(read.map((file) => file.arrayBuffer()));
  model.send({ act: "drop", names: read.map((file) => file.name), refused }, undefined, contents);
}

function render({ model, el }) {
  let root = null, release = () => {}, forget = () => {};
  const click = (event) => clicked(event, root, model), key = (event) => typed(event, root, model);
  const twice = (event) => { if (event.target.closest(".citerec-chooser select")) opens(event.target); };
  const drag = (event) => dragged(event, root), drop = (event) => dropped(event, root, model);
  const fill = ({ slot, html, focus }) => {
    const place = root.querySelector(`[data-slot="${CSS.escape(slot)}"]`);
    if (place) place.innerHTML = html;
    if (html) place?.scrollIntoView({ block: "nearest" });
    if (focus) (place?.querySelector("button") ?? place?.querySelector("[tabindex]"))?.focus();
  };
  const looking = setInterval(() => {
    root = el.closest(".citerec-view");
    if (!root) return;
    clearInterval(looking);
    root.classList.add("citerec-ready");
    root.addEventListener("click", click);
    root.addEventListener("dblclick", twice);
    for (const type of ["dragover", "dragleave"]) root.addEventListener(type, drag);
    root.addEventListener("drop", drop);
    window.addEventListener("keydown", key, true);
    release = kept(root);
    forget = rewritten(root);
    model.on("msg:custom", fill);
    model.send({ act: "ready" });
  }, 50);
  return () => {
    clearInterval(looking);
    release();
    forget();
    root?.removeEventListener("click", click);
    root?.removeEventListener("dblclick", twice);
    for (const type of ["dragover", "dragleave"]) root?.removeEventListener(type, drag);
    root?.removeEventListener("drop", drop);
    window.removeEventListener("keydown", key, true);
    model.off("msg:custom", fill);
  };
}
export default { render };
