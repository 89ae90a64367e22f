import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ServiceOptions } from '../../../src/http/route/console/api.ts';
import { get } from '../lib/console.ts';
import { type Description, fetchDescription } from '../lib/description.ts';
import { messageOf } from '../lib/message.ts';
import { imageHint, optionGroups } from '../lib/options.ts';
import { Top } from '../ui/Top.tsx';
import { CodePanel } from './CodePanel.tsx';
import { agreement, type Balance, type Cost, costOf, readBalance } from './cost.ts';
import { type Ground, groundOf, sameGround, withGround } from './ground.ts';
import { ImagePicker } from './ImagePicker.tsx';
import { fileImage, imagesAmong, type SourceImage } from './image.ts';
import { KeyField } from './KeyField.tsx';
import { Options } from './Options.tsx';
import { Progress } from './Progress.tsx';
import { AnswerDetails, ErrorNotice, ResultBar } from './ResultPanel.tsx';
import { readable } from './readable.ts';
import { initialValues, requestOf, type Values, withMask, withSize } from './request.ts';
import { save } from './result.ts';
import { Stage } from './Stage.tsx';
import { marksOf, noMarks, withMarks } from './subject.ts';
import { useApiKey } from './useApiKey.ts';
import { useCutout } from './useCutout.ts';

const keyMissing = 'Sign in or enter an API key, then press “Remove the background”.';

/** Milliseconds after the last click or stroke before what was marked is sent. */
const pause = { click: 400, stroke: 900 } as const;

/** What waits for the visitor's consent to use credits. */
interface Waiting {
  readonly source: SourceImage;
  readonly values: Values;
  readonly cost: Cost;
}

/** `/`: cuts out an image at once as a preview, using the public API only. */
export function Playground() {
  const [description, setDescription] = useState<Description>();
  const [prices, setPrices] = useState<ServiceOptions['prices']>();
  const [balance, setBalance] = useState<Balance>();
  const [image, setImage] = useState<SourceImage>();
  const [values, setValues] = useState(initialValues);
  const [notice, setNotice] = useState('');
  const [waiting, setWaiting] = useState<Waiting>();
  const [over, setOver] = useState(false);
  const apiKey = useApiKey();
  const cutout = useCutout();
  const { running, result } = cutout;
  const failed = result !== undefined && result.answer.errors.length > 0;
  const signedIn = apiKey.session?.signedIn === true;

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

  /** Without the balance the page works and says no cost. */
  const refresh = async (key: string): Promise<Balance | undefined> => {
    const now = await readBalance(key).catch(() => undefined);
    setBalance(now);
    return now;
  };
  useEffect(() => {
    setNotice('');
    if (apiKey.value === '' && !signedIn) return setBalance(undefined);
    const timer = setTimeout(() => void refresh(apiKey.value), 300);
    return () => clearTimeout(timer);
  }, [apiKey.value, signedIn]);

  const sizeOf = ({ texts }: Values) => texts['size'] ?? '';
  /** Changed options make an error of the earlier ones meaningless. */
  const change = (next: Values) => {
    setValues(next);
    setNotice('');
    if (failed) cutout.clear();
  };

  /** `asked`: the visitor pressed something beside which the cost stands. */
  const send = async (source: SourceImage, wanted: Values, { asked = false, onlySave = false } = {}) => {
    setNotice('');
    setWaiting(undefined);
    try {
      const key = await apiKey.obtain();
      if (key === undefined) return setNotice(keyMissing);
      const cost = costOf(sizeOf(wanted), await refresh(key), prices);
      if (cost && cost.credits > 0 && !asked && !agreement.given())
        return setWaiting({ source, values: wanted, cost });
      const made = await cutout.run(key, source, wanted, onlySave);
      if (onlySave && made && made.answer.errors.length === 0) save(made);
      if (made) void refresh(key);
    } catch (error) {
      setNotice(messageOf(error));
    }
  };
  const useCredits = ({ source, values: wanted }: Waiting) => {
    agreement.give();
    void send(source, wanted, { asked: true });
  };

  /** What was marked last; sent after a pause, as a preview. */
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sendLater = (next: Values, ms: number) => {
    clearTimeout(later.current);
    if (!image) return;
    later.current = setTimeout(() => void send(image, withSize(next, 'preview')), ms);
  };
  const marked = (next: Values, ms: number) => {
    const preview = withSize(next, 'preview');
    change(preview);
    sendLater(preview, ms);
  };
  const onMask = (mask: File | undefined) => {
    const next = withMask(mask ? withMarks(values, noMarks) : values, mask);
    if (mask) return marked(next, pause.stroke);
    clearTimeout(later.current);
    setValues(next);
  };

  /** Images chosen so far: one that is still being decoded when the next one is chosen is dropped. */
  const chosen = useRef(0);
  const choose = (next: SourceImage) => {
    chosen.current += 1;
    const turn = chosen.current;
    setNotice('');
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
    clearTimeout(later.current);
    cutout.clear();
    setImage(next);
    setValues(preview);
    void send(next, preview);
  };
  const chooseAmong = (files: FileList | undefined) => {
    const [first, ...others] = imagesAmong(files);
    if (!first) return;
    choose(fileImage(first));
    if (others.length > 0)
      setNote(
        `${others.length + 1} photos were dropped; this is ${first.name}. Drop one at a time, or cut out a folder with “npx cutout run FOLDER”.`,
      );
  };
  const [note, setNote] = useState('');
  useEffect(() => {
    if (image?.kind !== 'file' || !note.includes(image.file.name.replace(/\.[^.]*$/, ''))) setNote('');
  }, [image]);
  const fullSize = () => {
    if (!image) return;
    const full = withSize(values, 'full');
    setValues(full);
    void send(image, full, { asked: true });
  };

  const ground = groundOf(values);
  const onGround = (next: Ground) => {
    const wanted = withGround(values, next);
    change(wanted);
    // A file with a background cannot be shown on another one.
    if (image && result && groundOf(result.values).kind !== 'none') void send(image, wanted);
  };
  const saveOnGround = () => {
    if (image && result) void send(image, withGround(result.values, ground), { asked: true, onlySave: true });
  };

  // A photo may be dropped anywhere on the page, and pasted anywhere except into a field that accepts it itself.
  useEffect(() => {
    const paste = (event: ClipboardEvent) => chooseAmong(event.clipboardData?.files);
    const drag = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === 'dragover');
      if (event.type === 'drop') chooseAmong(event.dataTransfer?.files);
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
  const cost = costOf(sizeOf(values), balance, prices);
  const onPicture = running ? (
    <Progress running={running} stop={cutout.stop} />
  ) : waiting ? (
    <div class="on-picture row spread" role="alert">
      <span>
        This result costs <strong>{waiting.cost.words}</strong>: the free previews of today are used up.
      </span>
      <span class="row">
        <button type="button" class="primary" onClick={() => useCredits(waiting)}>
          Use credits
        </button>
        <button type="button" onClick={() => setWaiting(undefined)}>
          Not now
        </button>
      </span>
    </div>
  ) : result && !failed ? (
    <ResultBar
      result={result}
      fullSize={fullSize}
      fullPrice={costOf('full', balance, prices)?.words}
      saveOnGround={
        sameGround(result.values, values)
          ? undefined
          : { save: saveOnGround, words: costOf(sizeOf(result.values), balance, prices)?.words ?? '' }
      }
      busy={running !== undefined}
    />
  ) : null;
  return (
    <>
      <Top here="/" />
      <main class="playground">
        <section class="view" aria-label="Image and result">
          <h1 class="visually-hidden">Playground</h1>
          <Stage
            image={image}
            result={failed ? undefined : result}
            over={over}
            onMask={onMask}
            marks={takesPoints ? marksOf(values) : undefined}
            onMarks={(marks) => marked(withMarks(values, marks), pause.click)}
            ground={ground}
            onGround={onGround}
            onPicture={onPicture}
          >
            <ImagePicker first={!image} hint={description ? imageHint(description) : ''} choose={choose} />
          </Stage>
          {trouble !== '' && (
            <p class={cutout.trouble ? 'notice error' : 'notice'} role="alert">
              {trouble}
            </p>
          )}
          {note !== '' && (
            <p class="notice" role="status">
              {note}
            </p>
          )}
          {result && failed && <ErrorNotice answer={result.answer} />}
        </section>
        <form
          class="controls"
          aria-label="Request"
          onSubmit={(event) => {
            event.preventDefault();
            if (image) void send(image, values, { asked: cost !== undefined });
          }}
        >
          <div class="go">
            <button class="primary" type="submit" disabled={!image || running !== undefined}>
              Remove the background
            </button>
            {cost && (
              <span class="soft small" data-testid="cost">
                The next result: {cost.words}
              </span>
            )}
          </div>
          <KeyField apiKey={apiKey} />
          <details>
            <summary>Options</summary>
            <div class="options">
              <Options groups={groups} values={values} change={change} />
            </div>
          </details>
          <details class="code">
            <summary>This request as code</summary>
            <CodePanel request={requestOf(image, values)} />
          </details>
          {result && <AnswerDetails result={result} />}
        </form>
      </main>
    </>
  );
}
