// Loaded before a client (node --import): what a line in /etc/hosts does, for one name and for this process
// alone. Connections to port 443 of that name go to CUTOUT_TEST_FRONT on this machine; certificates are
// checked for the name as ever.
import type { ClientRequestArgs } from 'node:http';
import https from 'node:https';

const port = Number(process.env['CUTOUT_TEST_FRONT']);

interface Connecting {
  createConnection(options: ClientRequestArgs & { servername?: string }, ...rest: unknown[]): unknown;
}

const agent = https.Agent.prototype as unknown as Connecting;
const { createConnection } = agent;
agent.createConnection = function (options, ...rest) {
  const name = options.host ?? options.hostname;
  if (name !== 'api.remove.bg' || Number(options.port) !== 443)
    throw new Error(`the client asks for ${name}:${options.port}`);
  return createConnection.call(this, { ...options, host: '127.0.0.1', port, servername: name }, ...rest);
};
