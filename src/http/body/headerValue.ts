/** node:http decodes headers as Latin-1; clients send UTF-8. */
const decoded = (text: string) => (/^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, 'latin1').toString());

/**
 * Parses `form-data; name="a"; filename=b.jpg` as clients write it: quoted or not, with backslashes as
 * separators of Windows paths. Linear time. `value`: what stands before the first semicolon; `parameters`: keyed by name in
 * lower case, of a repeated one the first.
 */
export function headerValue(header: string) {
  const text = decoded(header);
  const parameters = new Map<string, string>();
  let at = 0;
  const until = (stop: string, other = stop) => {
    while (at < text.length && text[at] !== stop && text[at] !== other) at += 1;
  };
  until(';');
  const value = text.slice(0, at).trim();
  while (at < text.length) {
    at += 1;
    let start = at;
    until('=', ';');
    if (text[at] !== '=') continue;
    const name = text.slice(start, at).trim().toLowerCase();
    at += 1;
    while (text[at] === ' ' || text[at] === '\t') at += 1;
    start = at;
    if (text[at] === '"') {
      do {
        at += 1;
        until('"');
      } while (at < text.length && text[at - 1] === '\\');
      start += 1;
    } else {
      until(';');
    }
    const content = text.slice(start, at);
    if (!parameters.has(name))
      parameters.set(name, text[start - 1] === '"' ? content.replaceAll('\\"', '"') : content.trim());
    until(';');
  }
  return { value, parameters };
}
