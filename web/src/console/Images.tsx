import { useState } from 'preact/hooks';
import type { ImageInfo } from '../../../src/http/route/console/api.ts';
import { post } from '../lib/console.ts';
import { Confirm } from '../ui/Confirm.tsx';
import { at, bytes } from '../ui/format.ts';
import { Show } from '../ui/Show.tsx';
import { messageOf, useLoad } from '../ui/useLoad.ts';

/** Images that the account submitted to improve the networks. */
export function Images() {
  const loaded = useLoad<readonly ImageInfo[]>('images');
  const [trouble, setTrouble] = useState('');
  const remove = (id: string) => {
    post(`images/${id}/delete`).then(loaded.reload, (error: unknown) => setTrouble(messageOf(error)));
  };
  return (
    <>
      <p class="soft">
        Images submitted through <code>POST /v1.0/improve</code>. No other image is kept.
      </p>
      {trouble !== '' && (
        <p class="notice error" role="alert">
          {trouble}
        </p>
      )}
      <Show loaded={loaded}>
        {(images) =>
          images.length === 0 ? (
            <p class="soft">No images.</p>
          ) : (
            <div class="wide">
              <table>
                <thead>
                  <tr>
                    <th>Submitted</th>
                    <th>Name</th>
                    <th class="number">Size</th>
                    <th class="number">Bytes</th>
                    <th>
                      <span class="visually-hidden">Delete</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {images.map((image) => (
                    <tr key={image.id}>
                      <td class="nowrap">{at(image.at)}</td>
                      <td>{image.name ?? '–'}</td>
                      <td class="number">
                        {image.width} × {image.height}
                      </td>
                      <td class="number">{bytes(image.bytes)}</td>
                      <td>
                        <Confirm
                          label="Delete"
                          question="This cannot be undone."
                          act={() => remove(image.id)}
                        />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Show>
    </>
  );
}
