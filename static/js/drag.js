// drag follows the pointer from a pointerdown on a handle until it is released: move(event), then end().
export function drag(handle, { pointerId }, move, end) {
  const over = new AbortController();
  const { signal } = over;
  handle.setPointerCapture(pointerId);
  handle.classList.add("dragged");
  handle.addEventListener("pointermove", move, { signal });
  handle.addEventListener("lostpointercapture", () => {
    over.abort();
    handle.classList.remove("dragged");
    end();
  }, { signal });
}
