// What the views of items have in common.
import { h } from "../js/dom.js";
import { pictureTypes, shown } from "./model.js";

const longest = 40_000; // characters of a text that grows that are drawn at once; the end counts most

export class View {
  constructor(element) {
    this.element = element;
  }

  update(item) {
    this.element.classList.toggle("undone", Boolean(item.undone));
  }
}

// pictureOf draws a picture from its bytes, never from an address that others give; null for what is none.
export function pictureOf(picture, alt = "Picture that the tool made") {
  if (!picture.data || !pictureTypes.test(picture.type)) return null;
  return h("img", { src: `data:${picture.type};base64,${picture.data}`, alt, class: "chat-picture" });
}

const drawn = new WeakMap(); // element → key

// redraw puts what make gives into a place, unless it has that already, as key says. The focus stays on what has the same data-key, or
// close by.
export function redraw(place, key, make) {
  const text = JSON.stringify(key);
  if (drawn.get(place) === text) return;
  drawn.set(place, text);
  const had = place.contains(document.activeElement) ? document.activeElement : null;
  place.replaceChildren(...make());
  if (!had || had === place) return;
  const same = had.dataset.key && place.querySelector(`[data-key="${CSS.escape(had.dataset.key)}"]`);
  (same || place.closest("[tabindex]") || place.parentElement?.querySelector("textarea"))?.focus({ preventScroll: true });
}

// growing gives what shows a text that grows in an element. Only what is new is drawn, as long as all of it is short enough to be whole. The
// end stays in view when it is.
export function growing(element) {
  let had = "";
  element.hidden = true;
  return (text) => {
    if (text === had) return;
    const end = element.scrollHeight - element.scrollTop - element.clientHeight < 20;
    if (text.length <= longest && text.startsWith(had) && had) element.append(shown(text.slice(had.length)));
    else element.replaceChildren(...(text.length > longest ? [earlier(text)] : []), shown(text.slice(-longest)));
    had = text;
    element.hidden = !text;
    if (end) element.scrollTop = element.scrollHeight;
  };
}

// earlier is a button that shows what is left out at the beginning.
function earlier(text) {
  const more = h("button", { type: "button", class: "link", click: () => more.replaceWith(shown(text.slice(0, -longest))) }, `Show ${(text.length - longest).toLocaleString("en")} characters before this\n`);
  return more;
}

// outputOf makes a place for what a program writes, and what shows it.
export function outputOf(label, kind = "") {
  const element = h("pre", { class: `chat-output ${kind}`.trim(), role: "group", tabindex: "0", "aria-label": label });
  return { element, show: growing(element) };
}
