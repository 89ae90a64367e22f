import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ServiceOptions } from '../../../src/http/route/console/api.ts';
import { get } from '../lib/console.ts';
import { type Description, fetchDescription } from '../lib/description.ts';
import { messageOf } from '../lib/message.ts';
import { imageHint, optionGroups } from '../lib/options.ts';
import { Top } from '../ui/Top.tsx';
import { CodePanel } from './CodePanel.tsx';
import { ImagePicker } from './ImagePicker.tsx';
import { fileImage, imageAmong, type SourceImage } from './image.ts';
import { KeyField } from './KeyField.tsx';
import { Options } from './Options.tsx';
import { Progress } from './Progress.tsx';
import { ResultPanel } from './ResultPanel.tsx';
import { readable } from './readable.ts';
import { initialValues, requestOf, type Values, withMask, withSize } from './request.ts';
import { chargeOf } from './result.ts';
import { Stage } from './Stage.tsx';
import { marksOf, noMarks, withMarks } from './subject.ts';
import { freePreviews, useApiKey } from './useApiKey.ts';
import { useCutout } from './useCutout.ts';

const keyMissing = 'Sign in or enter an API key, then press “Remove the background”.';
const noFreePreviews =
  'No free previews are left, so nothing was sent. “Remove the background” uses credits from here on.';

/** `/`: cuts out an image at once as a free preview, using the public API only. */
export function Playground() {
  const [description, setDescription] = useState<Description>();
  const [prices, setPrices] = useState<ServiceOptions['prices']>();
  const [image, setImage] = useState<SourceImage>();
  const [values, setValues] = useState(initialValues);
  const [notice, setNotice] = useState('');
  const [over, setOver] = useState(false);
  const apiKey = useApiKey();
  const cutout = useCutout();
  const { running, result } = cutout;
  /** False after the first preview that was not free: from then on only a click spends credits. */
  const automatic = useRef(true);

  useEffect(() => {
    fetchDescription().then(setDescription, () =>
      setNotice('The description of the API could not be loaded. Reload the page.'),
    );
    // Without the prices the page works and shows none.
    get<ServiceOptions>('options').then(
      (options) => setPrices(options.prices),
      () => undefined,
    );
  }, []);

  const send = async (source: SourceImage, wanted: Values, onlyFree = false) => {
    setNotice('');
    try {
      const key = await apiKey.obtain();
      if (key === undefined) return setNotice(keyMissing);
      if (onlyFree && (!automatic.current || (await freePreviews(key)) === 0))
        return setNotice(noFreePreviews);
      const made = await cutout.run(key, source, wanted);
      if (onlyFree && made && chargeOf(made) > 0) automatic.current = false;
    } catch (error) {
      setNotice(error instanceof Error ? error.message : String(error));
    }
  };
  /** Images chosen so far: one that is still being decoded when the next one is chosen is dropped. */
  const chosen = useRef(0);
  const choose = (next: SourceImage) => {
    chosen.current += 1;
    const turn = chosen.current;
    if (next.kind === 'url') return show(next);
    readable(next.file).then(
      (file) => {
        if (file !== next.file || turn !== chosen.current) URL.revokeObjectURL(next.preview);
        if (turn === chosen.current) show(file === next.file ? next : fileImage(file));
      },
      (error: unknown) => {
        if (turn === chosen.current) setNotice(messageOf(error));
      },
    );
  };
  const show = (next: SourceImage) => {
    // Mask, points and box belong to one image.
    const preview = withMarks(withMask(withSize(values, 'preview'), undefined), noMarks);
    cutout.clear();
    setImage(next);
    setValues(preview);
    void send(next, preview, true);
  };
  const fullSize = () => {
    if (!image) return;
    const full = withSize(values, 'full');
    setValues(full);
    void send(image, full);
  };

  // A photo may be dropped anywhere on the page, and pasted anywhere except into a field that accepts it itself.
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const pasted = imageAmong(event.clipboardData?.files);
      if (pasted) choose(pasted);
    };
    const drag = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === 'dragover');
      const dropped = event.type === 'drop' ? imageAmong(event.dataTransfer?.files) : undefined;
      if (dropped) choose(dropped);
    };
    const dragging = ['dragover', 'dragleave', 'drop'] as const;
    addEventListener('paste', paste);
    for (const type of dragging) addEventListener(type, drag);
    return () => {
      removeEventListener('paste', paste);
      for (const type of dragging) removeEventListener(type, drag);
    };
  });

  const groups = useMemo(() => (description ? optionGroups(description) : []), [description]);
  const takesPoints = groups.some(({ options }) => options.some(({ name }) => name === 'subject_points'));
  const trouble = cutout.trouble || notice;
  return (
    <>
      <Top here="/" />
      <main class="playground">
        <section class="view" aria-label="Image and result">
          <h1 class="visually-hidden">Playground</h1>
          <Stage
            image={image}
            result={result}
            over={over}
            onMask={(mask) => setValues((now) => withMask(mask ? withMarks(now, noMarks) : now, mask))}
            marks={takesPoints ? marksOf(values) : undefined}
            onMarks={(marks) => setValues((now) => withMarks(now, marks))}
          >
            <ImagePicker first={!image} hint={description ? imageHint(description) : ''} choose={choose} />
          </Stage>
          {running && <Progress running={running} stop={cutout.stop} />}
          {trouble !== '' && (
            <p class={cutout.trouble ? 'notice error' : 'notice'} role="alert">
              {trouble}
            </p>
          )}
          {result && (
            <ResultPanel
              result={result}
              fullSize={fullSize}
              fullPrice={prices?.full}
              busy={running !== undefined}
            />
          )}
        </section>
        <form
          class="controls"
          aria-label="Request"
          onSubmit={(event) => {
            event.preventDefault();
            if (image) void send(image, values);
          }}
        >
          <KeyField apiKey={apiKey} />
          <details>
            <summary>Options</summary>
            <div class="options">
              <Options groups={groups} values={values} change={setValues} />
            </div>
          </details>
          <div class="go">
            <button class="primary" type="submit" disabled={!image || running !== undefined}>
              Remove the background
            </button>
          </div>
        </form>
        <details class="code">
          <summary>This request as code</summary>
          <CodePanel request={requestOf(image, values)} />
        </details>
      </main>
    </>
  );
}
