// A small JSON API: notes that are kept in memory. Replace it with yours.
import { router, HttpError } from './router.js';

const page = `<!doctype html><meta charset="utf-8"><title>Node API</title>
<style>body{font:16px/1.5 system-ui;max-width:40rem;margin:3rem auto;padding:0 1rem}code{background:#8882;padding:.1em .3em}</style>
<h1>It works</h1>
<p>This is <code>~/app/app.js</code>. Edit it in the terminal and reload: the server restarts by itself.</p>
<ul>
<li><code>GET <a href="/notes">/notes</a></code> all notes</li>
<li><code>POST /notes {"text": "…"}</code> a new one</li>
<li><code>GET /notes/:id</code>, <code>DELETE /notes/:id</code></li>
<li><code>GET <a href="/health">/health</a></code></li>
</ul>`;

export function app() {
  const notes = new Map([[1, { id: 1, text: 'Hello from your sandbox.' }]]);
  let next = 2;

  const find = (id) => {
    const note = notes.get(Number(id));
    if (!note) throw new HttpError(404, `no note ${id}`);
    return note;
  };

  return router()
    .get('/', ({ html }) => html(page))
    .get('/health', ({ json }) => json({ ok: true, uptime: Math.round(process.uptime()) }))
    .get('/notes', ({ json }) => json([...notes.values()]))
    .get('/notes/:id', ({ json, params }) => json(find(params.id)))
    .post('/notes', async ({ json, body }) => {
      const { text } = await body();
      if (typeof text !== 'string' || text === '') throw new HttpError(422, '"text" is needed');
      const note = { id: next++, text };
      notes.set(note.id, note);
      json(note, 201);
    })
    .delete('/notes/:id', ({ json, params }) => {
      notes.delete(find(params.id).id);
      json(null, 204);
    }).handler;
}
