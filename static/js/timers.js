// debounce returns a function that runs f once, ms after the last call. Its cancel() drops a pending run.
export function debounce(f, ms) {
  let timer = 0;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

// throttle returns a function that runs f at most once per ms, after the first call, even when it is called all the time.
export function throttle(f, ms) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      f();
    }, ms);
  };
}
