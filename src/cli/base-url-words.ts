/** How an API that is said to be nowhere is given its place, in what the library says to programs. */
const ADVICE = /\s*\bPass baseUrl\b(?:, such as ("[^"]*"))?\.?/;

/** Says the same of a flag, or of a field of the config, which are what there is at the command line. */
export function inBaseUrlWords(message: string, field: string): string {
  return message.replace(ADVICE, (_, example?: string) => {
    const such = example === undefined ? "" : `, such as ${example}`;
    return ` Say where the API is with ${field}${such}.`;
  });
}

/** Leaves it to whoever tells of it to say what to do. */
export function withoutBaseUrlAdvice(message: string): string {
  return message.replace(ADVICE, "");
}
