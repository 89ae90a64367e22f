/** One call of the public API. Uses XMLHttpRequest because fetch does not report the progress of an upload. */

interface ApiError {
  readonly title: string;
  readonly code: string;
  readonly detail?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Blob;
  /** The service's errors, if the status is not 2xx. */
  readonly errors: readonly ApiError[];
  /** Milliseconds from the click to the last byte. */
  readonly ms: number;
}

export interface Call {
  readonly path: string;
  readonly key: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly form: FormData;
  /** 0 to 1; 1 when the request is sent completely and the service is processing it. */
  readonly onUpload: (share: number) => void;
  readonly signal: AbortSignal;
}

const parseHeaders = (text: string) =>
  text
    .trim()
    .split(/\r?\n/)
    .filter((line) => line !== '')
    .map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()] as const;
    });

export const headerOf = ({ headers }: Answer, name: string): string | undefined =>
  headers.find(([each]) => each === name)?.[1];

async function errorsOf(status: number, body: Blob): Promise<readonly ApiError[]> {
  if (status >= 200 && status < 300) return [];
  try {
    const { errors } = JSON.parse(await body.text()) as { errors: ApiError[] };
    if (Array.isArray(errors) && errors.length > 0) return errors;
  } catch {
    // The answer comes from a proxy in front of the service.
  }
  return [{ title: `The answer was HTTP ${status} without an explanation.`, code: `http_${status}` }];
}

/** Rejects if there is no answer (network down, aborted). */
export const call = ({ path, key, headers, form, onUpload, signal }: Call): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const started = performance.now();
    request.open('POST', path);
    request.responseType = 'blob';
    request.setRequestHeader('X-Api-Key', key);
    for (const [name, value] of headers) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total, lengthComputable }) => {
      if (lengthComputable) onUpload(loaded / total);
    };
    request.upload.onload = () => onUpload(1);
    request.onload = () => {
      const ms = performance.now() - started;
      const { status } = request;
      const body = request.response as Blob;
      errorsOf(status, body).then(
        (errors) =>
          resolve({ status, headers: parseHeaders(request.getAllResponseHeaders()), body, errors, ms }),
        reject,
      );
    };
    request.onerror = () => reject(new Error('The service cannot be reached.'));
    request.onabort = () => reject(new DOMException('Stopped.', 'AbortError'));
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(form);
  });

/** `Server-Timing: decode;dur=12.3, …` as stages in their order; milliseconds. */
export function timings(header: string | undefined): { readonly name: string; readonly ms: number }[] {
  return (header ?? '').split(',').flatMap((part) => {
    const match = /^\s*([\w-]+)\s*;\s*dur=([\d.]+)/.exec(part);
    return match?.[1] ? [{ name: match[1], ms: Number(match[2]) }] : [];
  });
}
