// A router in the style of Express, as small as it can be: router().get('/things/:id', ({ params, json }) => …).handler
const maxBody = 1 << 20;

export class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function router() {
  const routes = [];
  const add = (method) => function (path, run) {
    const pattern = path.replace(/:(\w+)/g, '(?<$1>[^/]+)');
    routes.push({ method, pattern: new RegExp(`^${pattern}$`), run });
    return this;
  };

  async function handler(request, response) {
    const context = makeContext(request, response);
    try {
      const url = new URL(request.url, 'http://localhost');
      const found = routes.filter(({ pattern }) => pattern.test(url.pathname));
      if (found.length === 0) throw new HttpError(404, `nothing at ${url.pathname}`);
      const route = found.find(({ method }) => method === request.method);
      if (!route) throw new HttpError(405, `${request.method} is not possible here`);
      context.params = { ...route.pattern.exec(url.pathname).groups };
      context.query = url.searchParams;
      await route.run(context);
    } catch (error) {
      if (!error.status) console.error(error);
      context.json({ error: error.status ? error.message : 'internal error' }, error.status ?? 500);
    }
  }

  return { get: add('GET'), post: add('POST'), put: add('PUT'), patch: add('PATCH'), delete: add('DELETE'), handler };
}

function makeContext(request, response) {
  const send = (status, type, text) => {
    response.writeHead(status, { 'content-type': type });
    response.end(text);
  };
  return {
    request,
    response,
    html: (text, status = 200) => send(status, 'text/html; charset=utf-8', text),
    json: (value, status = 200) => send(status, 'application/json', status === 204 ? undefined : JSON.stringify(value) + '\n'),
    body: () => readJSON(request),
  };
}

async function readJSON(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > maxBody) throw new HttpError(413, 'the body is too large');
    chunks.push(chunk);
  }
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    if (value !== null && typeof value === 'object') return value;
  } catch { /* said below */ }
  throw new HttpError(400, 'the body is not a JSON object');
}
