import { useState } from 'preact/hooks';
import type { ImageInfo } from '../../../src/http/route/console/api.ts';
import { post } from '../lib/console.ts';
import { messageOf } from '../lib/message.ts';
import { Confirm } from '../ui/Confirm.tsx';
import { at, bytes } from '../ui/format.ts';
import { WideTable } from '../ui/WideTable.tsx';
import { PagedList } from './PagedList.tsx';
import { usePages } from './usePages.ts';

/** Images that the account submitted to improve the networks. */
export function ImagesPage() {
  const pages = usePages<ImageInfo>('images');
  const [trouble, setTrouble] = useState('');
  const remove = (id: string) => {
    setTrouble('');
    post(`images/${id}/delete`).then(pages.reload, (error: unknown) => setTrouble(messageOf(error)));
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
      <PagedList pages={pages} empty="No images.">
        {(images) => (
          <WideTable label="Images">
            <thead>
              <tr>
                <th>Submitted</th>
                <th>Name</th>
                <th class="number">Dimensions</th>
                <th class="number">File size</th>
                <th>
                  <span class="visually-hidden">Delete</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {images.map((image) => (
                <tr key={image.id}>
                  <td class="nowrap">{at(image.at)}</td>
                  <td class="long">{image.name ?? '–'}</td>
                  <td class="number">
                    {image.width} × {image.height}
                  </td>
                  <td class="number">{bytes(image.bytes)}</td>
                  <td>
                    <Confirm label="Delete" question="This cannot be undone." act={() => remove(image.id)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </WideTable>
        )}
      </PagedList>
    </>
  );
}
