// The client side of ttyd's wire protocol. No DOM in here.
//
// It has four extensions, which a real ttyd ignores. The first message names a window; ACK says how much output was drawn,
// so that sandboxd sends at most a window ahead (browsers have no backpressure on WebSockets); WATCHED says that a user is
// looking at the terminal, which keeps the sandbox awake; and sandboxd answers a PING. PAUSE and RESUME are never sent, because a real ttyd loses output
// on them.
const inputType = 0x30; // "0"
const outputType = 0x30;
const preferencesType = 0x32;
const pasteChunk = 16 * 1024; // bytes of input per message

const encoder = new TextEncoder();

// hello is the first message; it starts or joins the shell.
export function hello(columns, rows, window) {
  return encoder.encode(JSON.stringify({ AuthToken: "", columns, rows, window }));
}

export function resize(columns, rows) {
  return encoder.encode(`1${JSON.stringify({ columns, rows })}`);
}

export function ack(bytes) {
  return encoder.encode(`4${bytes}`);
}

// watched says that a user is looking at the terminal.
export function watched() {
  return encoder.encode("5");
}

// ping is answered by sandboxd itself.
export function ping() {
  return encoder.encode("6");
}

// input returns the messages for typed text or bytes.
export function* input(data) {
  const bytes = typeof data === "string" ? encoder.encode(data) : data;
  for (let at = 0; at < bytes.length; at += pasteChunk) {
    const part = bytes.subarray(at, at + pasteChunk);
    const message = new Uint8Array(part.length + 1);
    message[0] = inputType;
    message.set(part, 1);
    yield message;
  }
}

// bytesOf converts a "binary string", which xterm.js uses for old mouse protocols, to bytes.
export function bytesOf(binary) {
  return Uint8Array.from(binary, (c) => c.charCodeAt(0) & 0xff);
}

// isTTYD says whether a message is a real ttyd's, which runs tmux (internal/guest/tty): its preferences. The guest's are empty.
export function isTTYD(buffer) {
  const bytes = new Uint8Array(buffer);
  return bytes[0] === preferencesType && bytes.length > 3;
}

// output returns the bytes of an output message, or null. Other messages are ignored: ttyd's title is its own command line,
// and its preferences do not apply here.
export function output(buffer) {
  const bytes = new Uint8Array(buffer);
  return bytes[0] === outputType ? bytes.subarray(1) : null;
}
