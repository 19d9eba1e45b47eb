// Shows the history of a workspace: entries with their diffs, and what takes them back.

import { post } from "./api.js";
import { diffView } from "./diff.js";
import { day, el, fill, newId } from "./dom.js";
import { planView } from "./plan.js";
import { on, workspaces } from "./store.js";
import { Windowed } from "./windowed.js";

let chosen = "";

// A list of the known workspaces; `take` is called with the path of the chosen one.
export function workspaceChoice(take) {
  const id = newId("workspace");
  const select = el("select", { id, class: "workspace-choice", onchange: () => {
    chosen = select.value;
    take(chosen);
  } });
  const draw = () => {
    const known = workspaces();
    if (!known.some((each) => each.path === chosen)) chosen = known[0]?.path ?? "";
    const paths = known.map((each) => each.path).join("\n");
    if (select.dataset.paths === paths) return;
    select.dataset.paths = paths;
    fill(select, known.map((each) => el("option", { value: each.path, selected: each.path === chosen }, each.root)));
    if (chosen) take(chosen);
  };
  queueMicrotask(draw);
  return { host: el("span", { class: "choice-place" }, el("label", { for: id, class: "hidden-text" }, "Workspace"), select), end: on("sessions", draw) };
}

export function historyView() {
  let workspace = "";
  let entries = [];
  let shownEntry = null;
  const search = el("input", { type: "search", class: "filter", placeholder: "Search", "aria-label": "Search the history", autocomplete: "off" });
  const plan = el("div", { class: "plan-place" });
  const detail = el("div", { class: "detail-place" });
  const blank = el("p", { class: "blank" }, "No changes are recorded yet.");
  const list = new Windowed({ label: "History, the newest first", rowHeight: 30, most: 14, draw: (n) => row(entries[n]) });
  const wanted = (what) => planView(plan, workspace, what, load);
  const choice = workspaceChoice((path) => {
    workspace = path;
    fill(plan);
    fill(detail);
    load();
  });
  const mark = el("input", { type: "text", class: "mark", placeholder: "Name of a mark", "aria-label": "Name of a mark", maxlength: 200 });
  const setMark = async () => {
    try {
      await post("/api/mark", { workspace, name: mark.value });
      mark.value = "";
      load();
    } catch (error) {
      fill(plan, el("p", { class: "careful", role: "alert" }, error.message));
    }
  };
  const host = el("section", { class: "history", "aria-labelledby": "history" },
    el("div", { class: "section-head" }, el("h2", { id: "history" }, "History"), choice.host, search),
    el("div", { class: "rule-row tools" },
      el("button", { type: "button", class: "undo-last", onclick: () => wanted({ kind: "undo" }) }, "Undo the last change…"),
      el("button", { type: "button", onclick: () => wanted({ kind: "redo" }) }, "Redo…"),
      el("span", { class: "mark-place" }, mark, el("button", { type: "button", onclick: setMark }, "Set a mark"))),
    plan, blank, list.host, detail);

  async function load() {
    if (!workspace) return;
    const found = await post("/api/history", { workspace, search: search.value }).catch(() => null);
    if (!found) return;
    entries = found.entries;
    blank.hidden = entries.length > 0;
    list.host.hidden = entries.length === 0;
    list.resize(entries.length, { refresh: true });
  }

  function row(entry) {
    if (!entry) return el("div");
    const files = entry.files.map((each) => each.path);
    const about = entry.mark ?? (entry.command ? `$ ${entry.command}` : files.join(", "));
    return el("button", { type: "button", class: `history-row${entry.undone ? " undone" : ""}${entry.n === shownEntry ? " shown" : ""}`, "data-entry": entry.n, onclick: () => open(entry) },
      el("span", { class: "h-n" }, entry.n), el("span", { class: "c-time" }, day(entry.time)), el("span", { class: "c-tool" }, entry.tool || entry.kind),
      el("span", { class: "c-target" }, about), el("span", { class: "h-count" }, `${files.length} ${files.length === 1 ? "file" : "files"}`), el("span", { class: "c-by" }, entry.undone ? "undone" : entry.by));
  }

  async function open(entry) {
    shownEntry = entry.n;
    const found = await post("/api/entry", { workspace, n: entry.n }).catch((error) => ({ error }));
    if (found.error) return fill(detail, el("p", { class: "careful" }, found.error.message));
    const load = (split, start, count) => post("/api/history-diff", { diff: found.diff.name, split, start, count });
    const button = (name, what, style = "") => el("button", { type: "button", class: style, onclick: () => wanted(what) }, name);
    const isMark = entry.kind === "mark";
    fill(detail, el("article", { class: "detail", tabindex: -1, "aria-label": `Entry ${entry.n}` },
      el("header", { class: "detail-head" }, el("h3", {}, `Entry ${entry.n}`, entry.note && `: ${entry.note}`)),
      el("div", { class: "rule-row" },
        !isMark && !entry.undone && button("Undo this…", { kind: "undo", n: entry.n }, "undo-this"),
        isMark && button("Go back to this mark…", { kind: "undo", to: entry.mark }),
        entry.session && !isMark && button("Take back everything this session did…", { kind: "undo", session: entry.session }, "undo-session"),
        entry.files.length === 1 && button("Restore the file as it was after this…", { kind: "restore", path: entry.files[0].path, n: entry.n })),
      diffView(found.diff, load)));
    detail.firstChild.focus();
  }

  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 200);
  });
  const stop = on("call", (call) => call?.changed && load());
  return { host, end: () => {
    stop();
    choice.end();
  } };
}
