/** The token of a one-time link is in the URL's fragment, which browsers do not send to servers. */
const linkToken = () => /^#([0-9a-z]{32})$/.exec(location.hash)?.[1];

/** Removed from the URL at once, so that it does not stay in the history. Undefined if there is none. */
export function takeToken(): string | undefined {
  const token = linkToken();
  if (token !== undefined) history.replaceState(null, '', location.pathname);
  return token;
}
