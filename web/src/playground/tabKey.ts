const item = 'cutout-key';

/** The API key of this tab; it is gone with the tab. */
export const tabKey = {
  read: (): string => sessionStorage.getItem(item) ?? '',
  write: (key: string): void => {
    if (key === '') sessionStorage.removeItem(item);
    else sessionStorage.setItem(item, key);
  },
};
