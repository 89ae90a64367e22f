import { useState } from 'preact/hooks';
import type { PackInfo } from '../../../src/http/route/console/api.ts';
import { post } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';
import { credits, price } from '../ui/format.ts';
import { Show } from './Show.tsx';
import { useLoad } from './useLoad.ts';

/** The packs for sale; payment happens on the payment service's page. */
export function BuyPage() {
  const loaded = useLoad<readonly PackInfo[]>('packs');
  const [trouble, setTrouble] = useState('');
  const buy = (pack: string) => {
    post<{ url: string }>('checkout', { pack }).then(
      ({ url }) => location.assign(url),
      (error: unknown) => setTrouble(messageOf(error)),
    );
  };
  return (
    <>
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
      <Show loaded={loaded}>
        {(packs) => (
          <div class="tiles">
            {packs.map((pack) => (
              <div key={pack.id} class="card stack">
                <h2>{credits(pack.credits)}</h2>
                <p class="large">{price(pack.price, pack.currency)}</p>
                <button class="primary" type="button" onClick={() => buy(pack.id)}>
                  Buy
                </button>
              </div>
            ))}
          </div>
        )}
      </Show>
    </>
  );
}
