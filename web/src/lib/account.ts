/** Free previews that the key's account has left this month; undefined when the service does not say (a wrong key). */
export async function freePreviews(key: string): Promise<number | undefined> {
  const response = await fetch('/v1.0/account', { headers: { 'X-Api-Key': key } });
  if (!response.ok) return undefined;
  const { data } = (await response.json()) as { data: { attributes: { api: { free_calls: number } } } };
  return data.attributes.api.free_calls;
}
