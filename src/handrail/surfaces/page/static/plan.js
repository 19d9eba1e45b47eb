// Shows what an undo, a redo or a restore would do; the user then does exactly that, or leaves it.

import { post } from "./api.js";
import { diffView } from "./diff.js";
import { el, fill, say } from "./dom.js";

const WHY = { changed: "was changed since", in_the_way: "something else is in its place", not_kept: "its content was not recorded", damaged: "its record is damaged", unreadable: "cannot be read" };
const VERB = { undo: "Undo", redo: "Redo", restore: "Restore" };

export function planView(host, workspace, wanted, done) {
  fill(host, el("p", { class: "blank" }, "Looking…"));
  const close = () => fill(host);
  post("/api/plan", { workspace, ...wanted }).then(
    (plan) => fill(host, shown(plan, workspace, wanted, done, close)),
    (error) => fill(host, el("div", { class: "plan" }, el("p", { class: "careful", role: "alert" }, error.message), el("button", { type: "button", onclick: close }, "Close"))),
  );
}

function shown(plan, workspace, wanted, done, close) {
  const message = el("p", { class: "card-message", role: "alert" });
  const act = async () => {
    try {
      await post("/api/undo", { workspace, ...wanted, seen: plan.seen });
      say(`${VERB[plan.kind]} is done`);
      close();
      done();
    } catch (error) {
      message.textContent = error.message;
    }
  };
  const load = (split, start, count) => post("/api/history-diff", { diff: plan.diff.name, split, start, count });
  const entries = plan.entries.length ? `${plan.entries.length === 1 ? "entry" : "entries"} ${plan.entries.slice(0, 8).join(", ")}${plan.entries.length > 8 ? " …" : ""}` : "to the beginning";
  const can = plan.conflicts.length === 0;
  return el("article", { class: "plan detail", "aria-label": "What would happen" },
    el("h3", {}, `${VERB[plan.kind]} ${entries}: ${plan.changes} ${plan.changes === 1 ? "change" : "changes"}`),
    plan.conflicts.map(([path, why, diff]) => el("div", { class: "careful" }, `${path}: ${WHY[why] ?? why}`, diff && el("pre", {}, diff))),
    plan.merged.length > 0 && el("p", {}, `Merged with later changes: ${plan.merged.join(", ")}`),
    diffView(plan.diff, load),
    can ? null : el("p", {}, "Nothing can be done as a whole."),
    message,
    el("div", { class: "rule-row" }, can && el("button", { type: "button", class: "primary do-it", onclick: act }, VERB[plan.kind]), el("button", { type: "button", onclick: close }, "Leave it")));
}
