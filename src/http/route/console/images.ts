import { isoTime } from '../../../billing/present.ts';
import { deleteImage } from '../../../commands/erase.ts';
import { excerpt, fail } from '../../../errors.ts';
import type { HandedIn } from '../../../improve/improve.ts';
import type { Context } from '../../context.ts';
import { inPath, parse } from '../../requestParameters.ts';
import type { Route } from '../../router.ts';
import { accountIdOf, actorOf, type ConsoleParts, type Endpoints } from './access.ts';
import type { ImageInfo, Page } from './api.ts';
import { readPage, timeCursorOf, timedPage } from './page.ts';

export const imageInfo = ({ id, at, filename, bytes, width, height }: HandedIn): ImageInfo => ({
  id,
  at: isoTime(at),
  name: filename,
  bytes,
  width,
  height,
});

/** Images that the account submitted through `/v1.0/improve`. */
export function imageRoutes({ improve, stores }: ConsoleParts, { owner }: Endpoints): Route[] {
  const list = (ctx: Context): Promise<Page<ImageInfo>> => {
    const { before, limit } = parse(timedPage, ctx.query);
    const read = (most: number) => improve.page(accountIdOf(ctx), { before, limit: most });
    return readPage(limit, read, timeCursorOf, imageInfo);
  };
  const remove = async (ctx: Context) => {
    const id = inPath(ctx, 'id');
    if (!(await deleteImage({ stores, improve, actor: actorOf(ctx) }, id, accountIdOf(ctx))))
      throw fail('not_found', { detail: `There is no image ${excerpt(id)}.` });
    return { deleted: true };
  };
  return [owner.get('images', list), owner.post('images/:id/delete', remove)];
}
