// Shows a long list: only the rows that are in view exist. A row stays the same element while its key is in view, so that
// neither the focus nor a click is lost when rows come and change.

import { el } from "./dom.js";

const BEYOND = 10; // rows above and below the view

export class Windowed {
  // `draw(n)` returns the element of a row, `key(n)` what names it; `most` is the most rows that are shown without scrolling.
  constructor({ label, rowHeight, draw, key = (n) => n, most = 20, role = "region" }) {
    this.rowHeight = rowHeight;
    this.draw = draw;
    this.key = key;
    this.most = most;
    this.count = 0;
    this.top = this.end = 0;
    this.shown = new Map();
    this.room = el("div", { class: "windowed-room" });
    this.host = el("div", { class: "windowed", tabindex: 0, role, "aria-label": label }, this.room);
    this.host.addEventListener("scroll", () => this.later());
    this.observer = new ResizeObserver(() => {
      if (this.host.clientWidth === this.width) return this.later();
      this.width = this.host.clientWidth;
      this.resize(this.count);
    });
    this.observer.observe(this.host);
  }

  resize(count) {
    this.count = count;
    this.room.style.height = `${count * this.rowHeight}px`;
    const bar = this.host.scrollWidth > this.host.clientWidth ? 18 : 0;
    this.host.style.height = `${Math.max(1, Math.min(count, this.most)) * this.rowHeight + 2 + bar}px`;
    this.update();
  }

  later() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.update();
    });
  }

  update() {
    const top = Math.max(0, Math.floor(this.host.scrollTop / this.rowHeight) - BEYOND);
    const height = this.host.clientHeight || this.most * this.rowHeight;
    const end = Math.min(this.count, Math.ceil((this.host.scrollTop + height) / this.rowHeight) + BEYOND);
    Object.assign(this, { top, end });
    const wanted = new Map();
    for (let n = top; n < end; n++) wanted.set(this.key(n), n);
    for (const [key, row] of this.shown) {
      if (wanted.has(key)) continue;
      row.remove();
      this.shown.delete(key);
    }
    let next = null;
    for (const [key, n] of [...wanted].reverse()) next = this.place(key, n, next);
  }

  // Put the row of an item before the next one; a row that is there already keeps its element.
  place(key, n, next) {
    let row = this.shown.get(key);
    if (!row) {
      row = this.dress(this.draw(n));
      this.shown.set(key, row);
    }
    row.style.top = `${n * this.rowHeight}px`;
    row.style.height = `${this.rowHeight}px`;
    if (!row.parentNode || row.nextSibling !== next) this.room.insertBefore(row, next);
    return row;
  }

  dress(row) {
    row.classList.add("windowed-row");
    return row;
  }

  // Draw a row again, in its element.
  redraw(n) {
    const row = this.shown.get(this.key(n));
    if (!row) return;
    const fresh = this.dress(this.draw(n));
    row.className = fresh.className;
    row.replaceChildren(...fresh.childNodes);
  }

  // Draw all rows in view again.
  refresh() {
    for (let n = this.top; n < this.end; n++) this.redraw(n);
  }
}
