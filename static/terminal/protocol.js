// ttyd's wire protocol, as a viewer speaks it. No DOM in here.
//
// Three things are ours: the first message names a window, ACK says how much output is on the screen, so that sandboxd
// sends no more than the window ahead of it (a browser's websocket cannot be held back otherwise), and WATCHED says that
// somebody looks at the terminal, so that its sandbox stays awake. A real ttyd ignores all of them. PAUSE and RESUME are
// never sent: a real ttyd loses output on them.
const inputType = 0x30; // "0"
const outputType = 0x30;
const pasteChunk = 16 * 1024; // bytes of input in one message

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

// watched says that somebody looks at the terminal.
export function watched() {
  return encoder.encode("5");
}

// input gives the messages that carry text, or bytes, that were typed.
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

// bytesOf turns what a terminal reports as a "binary string" (old mouse protocols) into bytes.
export function bytesOf(binary) {
  return Uint8Array.from(binary, (c) => c.charCodeAt(0) & 0xff);
}

// output gives the bytes of an output message, or null for any other: the title that ttyd sends is its own command line,
// and its preferences are not ours.
export function output(buffer) {
  const bytes = new Uint8Array(buffer);
  return bytes[0] === outputType ? bytes.subarray(1) : null;
}
