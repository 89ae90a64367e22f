import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Stripe from 'stripe';
import { parsePacks } from '../../src/billing/packs.ts';
import type { PurchaseOptions } from '../../src/billing/stripeCheckout.ts';
import type { Cleanup } from './stores.ts';

export const webhookSecret = 'whsec_of_this_test';

/** A server that answers as Stripe does when a checkout session is created, and records its requests. */
export async function stripeLike(
  t: Cleanup,
): Promise<{ options: PurchaseOptions; asked: URLSearchParams[] }> {
  const asked: URLSearchParams[] = [];
  const server = createServer((req, res) => {
    let body = '';
    req.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    req.on('end', () => {
      const known = req.method === 'POST' && req.url === '/v1/checkout/sessions';
      const allowed = req.headers.authorization === 'Bearer sk_test_1';
      if (known && allowed) asked.push(new URLSearchParams(body));
      res.writeHead(known ? (allowed ? 200 : 401) : 404, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ id: 'cs_1', object: 'checkout.session', url: 'https://pay.example/cs_1' }));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const options: PurchaseOptions = {
    packs: parsePacks('50=9.00 EUR, 500=49 EUR'),
    secretKey: 'sk_test_1',
    webhookSecret,
    returnUrl: 'http://shop.example/console',
    api: { host: '127.0.0.1', port, protocol: 'http' },
  };
  return { options, asked };
}

/** An event about a checkout session, signed by Stripe's own test signer. */
export function signedEvent(
  session: object,
  { type = 'checkout.session.completed', id = 'evt_1', secret = webhookSecret, timestamp = 0 } = {},
): { body: Buffer; signature: string } {
  const object = { id: 'cs_1', object: 'checkout.session', payment_status: 'paid', ...session };
  const payload = JSON.stringify({ id, object: 'event', type, data: { object } });
  const stripe = new Stripe('sk_test_unused');
  const signature = stripe.webhooks.generateTestHeaderString({
    payload,
    secret,
    timestamp: timestamp || Math.floor(Date.now() / 1000),
  });
  return { body: Buffer.from(payload), signature };
}
