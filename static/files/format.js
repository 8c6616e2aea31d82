// Formats sizes, permissions and times.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// size formats bytes in binary units with three digits, as internal/text/size.go does.
export function size(bytes) {
  let n = Math.round(bytes);
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${Number(n.toFixed(n >= 100 ? 0 : n >= 10 ? 1 : 2))} ${units[unit]}`;
}

// permissions formats a mode as ls does: "rw-r--r--".
export function permissions(mode) {
  const n = parseInt(mode, 8);
  if (Number.isNaN(n)) return "";
  let out = "";
  for (let who = 2; who >= 0; who--) {
    const bits = (n >> (who * 3)) & 7;
    const special = (n >> (9 + who)) & 1; // setuid, setgid, sticky
    const x = special ? (who ? "sS" : "tT")[bits & 1 ? 0 : 1] : bits & 1 ? "x" : "-";
    out += (bits & 4 ? "r" : "-") + (bits & 2 ? "w" : "-") + x;
  }
  return out;
}

// octal formats a mode as four digits.
export function octal(n) {
  return n.toString(8).padStart(4, "0");
}

const day = 86_400_000;

// shortTime is for narrow columns: the time if it is today, else the date.
export function shortTime(iso, now = Date.now()) {
  const then = new Date(iso);
  if (Number.isNaN(then.getTime())) return "";
  const today = new Date(now).toDateString() === then.toDateString();
  if (today) return then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const near = Math.abs(now - then.getTime()) < 300 * day;
  return then.toLocaleDateString([], near ? { month: "short", day: "numeric" } : { year: "numeric", month: "short", day: "numeric" });
}

// fullTime is for tooltips.
export function fullTime(iso) {
  const then = new Date(iso);
  return Number.isNaN(then.getTime()) ? "" : then.toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
}

// count formats "1 file", "3 files".
export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

// duration formats seconds.
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// kindName names the type of an entry.
export function kindName(entry) {
  if (entry.type === "link") return entry.target_type ? `Link to a ${entry.target_type}` : "Broken link";
  return { file: "File", folder: "Folder" }[entry.type] ?? "Special file (device, pipe or socket)";
}
