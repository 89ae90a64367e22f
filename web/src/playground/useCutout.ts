import { useEffect, useRef, useState } from 'preact/hooks';
import { call } from '../lib/call.ts';
import { messageOf } from '../lib/message.ts';
import { endpoint } from '../lib/options.ts';
import type { SourceImage } from './image.ts';
import { choosesSubject, formOf, headersOf, type Values } from './request.ts';
import { type Result, resultOf, revoke } from './result.ts';

/** A request in progress. */
export interface Running {
  /** `performance.now()` at its start. */
  readonly started: number;
  /** Share of the upload that is sent, 0 to 1. */
  readonly upload: number;
  /** It says which subject is meant, for which networks may have to be downloaded first. */
  readonly choosing: boolean;
}

export interface Cutout {
  readonly running: Running | undefined;
  readonly result: Result | undefined;
  /** Why there was no answer; empty otherwise. */
  readonly trouble: string;
  /**
   * Sends the request and cancels a previous one; its result is shown, unless it is only to be saved and there is no
   * error. Undefined if there was no answer.
   */
  readonly run: (
    key: string,
    source: SourceImage,
    values: Values,
    onlySave?: boolean,
  ) => Promise<Result | undefined>;
  readonly stop: () => void;
  /** Cancels the request and discards the result. */
  readonly clear: () => void;
}

/** One request at a time through the public API; a new one cancels the previous one. */
export function useCutout(): Cutout {
  const [running, setRunning] = useState<Running>();
  const [result, setResult] = useState<Result>();
  const [trouble, setTrouble] = useState('');
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => (result ? revoke(result) : undefined), [result]);

  const stop = () => current.current?.abort();
  const clear = () => {
    stop();
    setResult(undefined);
    setTrouble('');
  };

  const run = async (key: string, source: SourceImage, values: Values, onlySave = false) => {
    stop();
    const abort = new AbortController();
    current.current = abort;
    setTrouble('');
    setRunning({ started: performance.now(), upload: 0, choosing: choosesSubject(values) });
    try {
      const answer = await call({
        path: endpoint,
        key,
        headers: headersOf(values),
        form: formOf(source, values),
        onUpload: (upload) =>
          setRunning((now) => (current.current === abort && now ? { ...now, upload } : now)),
        signal: abort.signal,
      });
      const made = await resultOf(answer, source, values);
      if (current.current !== abort) {
        revoke(made);
        return undefined;
      }
      if (!onlySave || made.answer.errors.length > 0) setResult(made);
      return made;
    } catch (error) {
      if (!abort.signal.aborted) setTrouble(messageOf(error));
      return undefined;
    } finally {
      if (current.current === abort) setRunning(undefined);
    }
  };
  return { running, result, trouble, run, stop, clear };
}
