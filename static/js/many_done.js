// What is told of something that was done with several sandboxes.

// end changes what is told in done when none of the rows that it waits for shows any more, such as of sandboxes that are being deleted. It
// returns whether it did.
export function end(done, shows) {
  const notice = done.querySelector("[data-waits]");
  if (!notice || notice.dataset.waits.split(" ").some(shows)) return false;
  notice.querySelector("strong").textContent = notice.dataset.ended;
  delete notice.dataset.waits;
  return true;
}
