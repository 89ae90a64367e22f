// Loaded before a client (node --import): has the effect of a line in /etc/hosts for one name and this process
// only. Connections to port 443 of that name go to CUTOUT_TEST_FRONT on this machine; certificates are
// checked for the name as usual.
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
