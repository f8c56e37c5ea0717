const PAGE = 10;

/** The place in a list that a key leads to; nothing where the key is not for moving. */
export function indexAfterKey(key: string, at: number, count: number): number | undefined {
  const places = new Map([
    ["ArrowDown", at + 1],
    ["ArrowUp", at - 1],
    ["PageDown", at + PAGE],
    ["PageUp", at - PAGE],
    ["Home", 0],
    ["End", count],
  ]);
  const wanted = places.get(key);
  return wanted === undefined ? undefined : Math.max(0, Math.min(count - 1, wanted));
}
