/** A text that is a link where it is an http(s) address, and nothing but a text everywhere else. */
export function SafeLink({
  address,
  text = address,
  tabIndex,
}: {
  readonly address: string;
  readonly text?: string;
  /** Where the Tab key comes to it. @default in its turn */
  readonly tabIndex?: number | undefined;
}) {
  if (!isWebAddress(address)) return <span class="break">{text}</span>;
  return (
    <a class="break" href={address} target="_blank" rel="noopener noreferrer" tabIndex={tabIndex}>
      {text}
    </a>
  );
}

/** Tells whether a text is an address that a browser may be sent to: http(s), and nobody's password in it. */
export function isWebAddress(text: string): boolean {
  return /^https?:\/\/[^/?#\\@]+([/?#]|$)/i.test(text) && text.length <= 2_000 && URL.canParse(text);
}
