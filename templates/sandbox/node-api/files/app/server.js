// Starts the API. This file is watched: save a change and it restarts.
import { createServer } from 'node:http';
import { app } from './app.js';

const port = Number(process.env.PORT ?? 3000);

createServer(app()).listen(port, '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${port}`);
});
