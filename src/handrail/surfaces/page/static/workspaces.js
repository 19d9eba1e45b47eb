// Lets the user choose one of the known workspaces; every view remembers the choice.

import { el, fill, newId } from "./dom.js";
import { on, workspaces } from "./store.js";

let chosen = "";

// A list of the known workspaces; `take` is called with the path of the chosen one, each time that it changes.
export function workspaceChoice(take) {
  const id = newId("workspace");
  let taken = "";
  let listed = "";
  const choose = (path) => {
    chosen = path;
    if (path && path !== taken) take(path);
    taken = path;
  };
  const select = el("select", { id, class: "workspace-choice", hidden: true, onchange: () => choose(select.value) });
  const draw = () => {
    const known = workspaces();
    const paths = known.map((each) => each.path).join("\n");
    if (listed === paths) return;
    listed = paths;
    const kept = known.find((each) => each.path === chosen) ?? known[0];
    select.hidden = !known.length;
    fill(select, known.map((each) => el("option", { value: each.path, selected: each === kept }, each.root)));
    choose(kept?.path ?? "");
  };
  queueMicrotask(draw);
  return { host: el("span", { class: "choice-place" }, el("label", { for: id, class: "hidden-text" }, "Workspace"), select), end: on("sessions", draw) };
}
