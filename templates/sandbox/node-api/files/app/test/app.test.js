import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { app } from '../app.js';

async function serve(t) {
  const server = createServer(app()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

const post = (url, body) => fetch(url, { method: 'POST', body });

test('a note that was posted can be read and deleted', async (t) => {
  const url = await serve(t);
  const made = await (await post(`${url}/notes`, '{"text":"milk"}')).json();
  assert.equal(made.text, 'milk');
  assert.deepEqual(await (await fetch(`${url}/notes/${made.id}`)).json(), made);
  assert.equal((await fetch(`${url}/notes/${made.id}`, { method: 'DELETE' })).status, 204);
  assert.equal((await fetch(`${url}/notes/${made.id}`)).status, 404);
});

test('bad input is refused', async (t) => {
  const url = await serve(t);
  assert.equal((await post(`${url}/notes`, 'not json')).status, 400);
  assert.equal((await post(`${url}/notes`, '{}')).status, 422);
  assert.equal((await fetch(`${url}/notes`, { method: 'PUT' })).status, 405);
  assert.equal((await fetch(`${url}/nowhere`)).status, 404);
});
