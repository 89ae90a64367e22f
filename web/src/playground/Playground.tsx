import { useEffect, useRef, useState } from 'preact/hooks';
import { type Answer, call } from '../lib/call.ts';
import type { Request } from '../lib/code.ts';
import { tabKey } from '../lib/console.ts';
import { type Description, endpoint, type OptionGroup, optionGroups } from '../lib/options.ts';
import { Top } from '../ui/Top.tsx';
import { CodePanel } from './CodePanel.tsx';
import { KeyField } from './KeyField.tsx';
import { Options, type Values } from './Options.tsx';
import { Outcome } from './Outcome.tsx';
import { type Chosen, PicturePicker } from './PicturePicker.tsx';
import { Progress, type Working } from './Progress.tsx';
import { Stage } from './Stage.tsx';

export interface Done {
  readonly answer: Answer;
  readonly picture: Chosen;
  /** Address of the answer's body, for the download. */
  readonly file: string;
  /** Of the answer as a picture, when it is one a browser shows. */
  readonly image: string | undefined;
  /** True when every pixel of the answer lies where it lay in the picture, whatever the size. */
  readonly aligned: boolean;
}

/** Options that move or cut the picture. */
const moving = ['crop', 'scale', 'position'];

const extension: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'application/zip': 'zip',
  'application/json': 'json',
};

/** Name of the file an answer is saved as. */
export function fileName(picture: Chosen, type: string): string {
  const name = picture.kind === 'file' ? picture.file.name : (picture.url.split('/').at(-1) ?? '');
  const stem = name.replace(/[?#].*$/, '').replace(/\.[^.]*$/, '') || 'picture';
  return `${stem}-cutout.${extension[type.split(';')[0] ?? ''] ?? 'bin'}`;
}

function requestOf(picture: Chosen | undefined, values: Values): Request {
  const texts = Object.entries(values.texts).filter(([, value]) => value !== '');
  const format = values.texts['format'] ?? 'auto';
  const json = values.headers['Accept'] === 'application/json';
  const end = json ? 'json' : format === 'auto' ? 'png' : format;
  return {
    address: location.origin,
    path: endpoint,
    picture:
      picture?.kind === 'url'
        ? { kind: 'url', url: picture.url }
        : { kind: 'file', name: picture?.file.name ?? 'photo.jpg' },
    fields: texts,
    files: Object.entries(values.files).map(([name, file]) => [name, file.name]),
    headers: Object.entries(values.headers).filter(([, value]) => value !== ''),
    out: `cutout.${end}`,
  };
}

function formOf(picture: Chosen, values: Values): FormData {
  const form = new FormData();
  if (picture.kind === 'file') form.append('image_file', picture.file);
  else form.append('image_url', picture.url);
  for (const [name, value] of Object.entries(values.texts)) if (value !== '') form.append(name, value);
  for (const [name, file] of Object.entries(values.files)) form.append(name, file);
  return form;
}

/** A result that fits the picture pixel by pixel can be laid over it. */
const isAligned = ({ texts }: Values) =>
  moving.every((name) => ['', 'false', '0', 'original'].includes(texts[name] ?? ''));

async function imageOf({ status, body }: Answer, file: string): Promise<string | undefined> {
  if (status !== 200) return undefined;
  if (body.type.startsWith('image/')) return file;
  if (!body.type.startsWith('application/json')) return undefined;
  const { data } = JSON.parse(await body.text()) as { data: { result_b64: string } };
  const bytes = Uint8Array.from(atob(data.result_b64), (character) => character.charCodeAt(0));
  return URL.createObjectURL(new Blob([bytes]));
}

/** `/`: what the service does, shown with the visitor's own photo, through the public API alone. */
export function Playground() {
  const [groups, setGroups] = useState<readonly OptionGroup[]>([]);
  const [picture, setPicture] = useState<Chosen>();
  const [values, setValues] = useState<Values>({ texts: { size: 'auto' }, files: {}, headers: {} });
  const [key, setKey] = useState(tabKey.read);
  const [working, setWorking] = useState<Working>();
  const [done, setDone] = useState<Done>();
  const [trouble, setTrouble] = useState('');
  const running = useRef<AbortController>(undefined);

  useEffect(() => {
    fetch('/openapi.json')
      .then((response) => response.json() as Promise<Description>)
      .then((description) => setGroups(optionGroups(description)))
      .catch(() => setTrouble('The description of the API could not be loaded. Reload the page.'));
  }, []);
  useEffect(
    () => () => {
      for (const url of new Set([done?.file, done?.image])) if (url) URL.revokeObjectURL(url);
    },
    [done],
  );

  const choose = (next: Chosen) => {
    running.current?.abort();
    setPicture(next);
    setDone(undefined);
    setTrouble('');
  };

  const run = async () => {
    if (!picture || key === '') return;
    const abort = new AbortController();
    running.current = abort;
    setTrouble('');
    setWorking({ started: performance.now(), upload: 0 });
    try {
      const headers = Object.entries(values.headers).filter(([, value]) => value !== '');
      const answer = await call({
        path: endpoint,
        key,
        headers,
        form: formOf(picture, values),
        onUpload: (upload) => setWorking((now) => now && { ...now, upload }),
        signal: abort.signal,
      });
      const file = URL.createObjectURL(answer.body);
      setDone({ answer, picture, file, image: await imageOf(answer, file), aligned: isAligned(values) });
    } catch (error) {
      const stopped = error instanceof DOMException && error.name === 'AbortError';
      if (!stopped) setTrouble(error instanceof Error ? error.message : String(error));
    } finally {
      if (running.current === abort) setWorking(undefined);
    }
  };

  const missing = !picture ? 'Choose a picture first.' : key === '' ? 'A key is needed to call the API.' : '';
  return (
    <>
      <Top here="/" />
      <main class="playground">
        <section class="view" aria-label="Picture and result">
          <h1 class="visually-hidden">Playground</h1>
          <Stage picture={picture} done={done} choose={choose}>
            <PicturePicker picture={picture} choose={choose} />
          </Stage>
          {working && <Progress working={working} stop={() => running.current?.abort()} />}
          {trouble !== '' && (
            <p class="notice error" role="alert">
              {trouble}
            </p>
          )}
          {done && <Outcome done={done} />}
        </section>
        <form
          class="controls"
          aria-label="Request"
          onSubmit={(event) => {
            event.preventDefault();
            void run();
          }}
        >
          <KeyField
            value={key}
            change={(next) => {
              tabKey.write(next);
              setKey(next);
            }}
          />
          <Options groups={groups} values={values} change={setValues} />
          <div class="go">
            <button class="primary" type="submit" disabled={missing !== '' || working !== undefined}>
              Remove the background
            </button>
            {missing !== '' && <p class="soft small">{missing}</p>}
          </div>
        </form>
        <CodePanel request={requestOf(picture, values)} />
      </main>
    </>
  );
}
