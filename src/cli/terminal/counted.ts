/** Writes how many there are of something: "1 tool", "2 tools". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
