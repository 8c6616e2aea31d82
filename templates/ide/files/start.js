// Starts code-server in this one process: what its own start does in two, the first of which only watches the second. Here
// the guest watches. It listens on the socket that it is given as descriptor 3, and says by a byte on descriptor 4
// that it answers.
"use strict";

const fs = require("fs");
const net = require("net");
const { parse, setDefaults } = require("./out/node/cli");
const { runCodeServer } = require("./out/node/main"); // finds no parent, so this is no child

// As in the process that code-server runs in itself: VS Code must not serve by itself, and terminals have the command "code".
process.env.CODE_SERVER_PARENT_PID = String(process.pid);
process.env.NODE_EXEC_PATH = process.execPath;

// Node knows no address of a local socket that it was given; code-server wants one to tell.
const address = net.Server.prototype.address;
net.Server.prototype.address = function () {
	return address.call(this) ?? (this.listening ? "descriptor 3" : null);
};

async function start() {
	await runCodeServer(await setDefaults(parse([...process.argv.slice(2), "--socket-fd", "3"]), {}));
	fs.writeSync(4, "1");
	fs.closeSync(4);
}

start().catch((error) => {
	console.error(error);
	process.exit(1);
});
