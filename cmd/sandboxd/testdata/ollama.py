"""A server that speaks Ollama's protocol, without a model: it answers with the last message."""
import http.server
import json


class Ollama(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, kind, pieces):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in [*pieces, b""]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()

    def do_GET(self):
        body = {"models": [{"name": "echo:latest", "model": "echo:latest"}]} if self.path == "/api/tags" else {"version": "0.17.4"}
        self.send("application/json", [json.dumps(body).encode()])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = asked["messages"][-1]["content"].split()
        if self.path == "/api/chat":
            lines = [{"model": asked["model"], "message": {"role": "assistant", "content": w}, "done": False} for w in words]
            lines.append({"model": asked["model"], "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
                          "prompt_eval_count": len(words), "eval_count": len(words)})
            self.send("application/x-ndjson", [json.dumps(line).encode() + b"\n" for line in lines])
            return
        answer = {"object": "chat.completion", "model": asked["model"], "choices": [{"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": " ".join(words)}}], "usage": {"prompt_tokens": len(words), "completion_tokens": len(words)}}
        self.send("application/json", [json.dumps(answer).encode()])


http.server.ThreadingHTTPServer(("127.0.0.1", 11434), Ollama).serve_forever()
