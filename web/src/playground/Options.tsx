import type { Option, OptionGroup } from '../lib/options.ts';
import type { Values } from './request.ts';

const without = <T,>(record: Readonly<Record<string, T>>, name: string): Record<string, T> =>
  Object.fromEntries(Object.entries(record).filter(([each]) => each !== name));

/** Six hexadecimal digits, for the browser's colour dialog. */
const asHex = (text: string) => (/^#?[0-9a-f]{6}/i.exec(text)?.[0] ?? 'ffffff').replace(/^#?/, '#');

function Control({
  option: { name, kind, choices, fallback, example, description },
  values,
  change,
}: {
  readonly option: Option;
  readonly values: Values;
  readonly change: (values: Values) => void;
}) {
  const value = values.texts[name] ?? '';
  const set = (text: string) =>
    change({ ...values, texts: { ...without(values.texts, name), [name]: text } });
  const shared = { id: name, 'aria-describedby': `${name}-hint` };
  const selected = value === fallback ? '' : value;
  return (
    <div class="field">
      <label for={name}>
        <code>{name}</code>
      </label>
      {kind === 'choice' && (
        <select {...shared} value={selected} onChange={({ currentTarget }) => set(currentTarget.value)}>
          <option value="">{fallback === '' ? '–' : `${fallback} (default)`}</option>
          {choices
            .filter((choice) => choice !== fallback)
            .map((choice) => (
              <option key={choice} value={choice}>
                {choice}
              </option>
            ))}
        </select>
      )}
      {kind === 'flag' && (
        <select {...shared} value={selected} onChange={({ currentTarget }) => set(currentTarget.value)}>
          <option value="">{fallback} (default)</option>
          <option value={fallback === 'true' ? 'false' : 'true'}>
            {fallback === 'true' ? 'false' : 'true'}
          </option>
        </select>
      )}
      {kind === 'text' && (
        <span class="with-colour">
          <input
            {...shared}
            type="text"
            value={value}
            placeholder={example || fallback}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
          {name === 'bg_color' && (
            <input
              type="color"
              aria-label="Pick bg_color"
              value={asHex(value)}
              onInput={({ currentTarget }) => set(currentTarget.value.slice(1))}
            />
          )}
        </span>
      )}
      {kind === 'file' && (
        <input
          {...shared}
          type="file"
          accept="image/*"
          onChange={({ currentTarget }) => {
            const file = currentTarget.files?.[0];
            const files = without(values.files, name);
            change({ ...values, files: file ? { ...files, [name]: file } : files });
          }}
        />
      )}
      <span class="hint" id={`${name}-hint`}>
        {description}
      </span>
    </div>
  );
}

/** Every option that the service publishes, and the two request headers that affect the answer. */
export function Options({
  groups,
  values,
  change,
}: {
  readonly groups: readonly OptionGroup[];
  readonly values: Values;
  readonly change: (values: Values) => void;
}) {
  const header = (name: string, text: string) =>
    change({ ...values, headers: { ...without(values.headers, name), [name]: text } });
  return (
    <>
      {groups.map(({ title, options }) => (
        <details key={title}>
          <summary>{title}</summary>
          <div class="stack">
            {options.map((option) => (
              <Control key={option.name} option={option} values={values} change={change} />
            ))}
          </div>
        </details>
      ))}
      <details>
        <summary>Request headers</summary>
        <div class="stack">
          <div class="field">
            <label for="accept">
              <code>Accept</code>
            </label>
            <select
              id="accept"
              value={values.headers['Accept'] ?? ''}
              onChange={({ currentTarget }) => header('Accept', currentTarget.value)}
            >
              <option value="">the image (default)</option>
              <option value="application/json">application/json</option>
            </select>
          </div>
          <div class="field">
            <label for="idempotency">
              <code>Idempotency-Key</code>
            </label>
            <input
              id="idempotency"
              type="text"
              value={values.headers['Idempotency-Key'] ?? ''}
              onInput={({ currentTarget }) => header('Idempotency-Key', currentTarget.value.trim())}
              aria-describedby="idempotency-hint"
            />
            <span class="hint" id="idempotency-hint">
              Safe-retry key: the same key returns the original result without a second charge.
            </span>
          </div>
        </div>
      </details>
    </>
  );
}
