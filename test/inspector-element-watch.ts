import type { Page } from "playwright-core";

/** What a page may hold: its own tags, and no attribute that runs, loads or moves anything. */
interface Watching {
  __strange?: string[];
  __pwned?: unknown;
}

/**
 * Runs in a page before all else: writes down every element and attribute that is none of ours, from the first to the last, even
 * where it is gone a moment later.
 */
export function watchElements(): void {
  const OWN = new Set(
    `a article aside audio b bdi body br button caption circle code col colgroup datalist dd defs del desc details div dl dt em
    fieldset figcaption figure footer form g h1 h2 h3 h4 h5 h6 head header hr html i img input ins kbd label legend li line link
    main mark menu meta meter nav ol optgroup option output p path pattern polygon polyline pre progress rect s samp script
    search section select small span strong sub summary sup svg table tbody td text textarea tfoot th thead time title tr
    tspan ul var`.split(/\s+/),
  );
  const strange: string[] = [];
  (window as Watching).__strange = strange;
  const note = (what: string, element: Element): void => {
    if (strange.length < 10) strange.push(`${what}: ${element.outerHTML.slice(0, 200)}`);
  };
  const isOurs = (address: string): boolean =>
    new URL(address, location.href).href.startsWith(`${location.origin}/inspect/`);
  const isAllowed = (element: Element, name: string, value: string): boolean => {
    if (name.startsWith("on")) return false;
    if (["srcdoc", "srcset", "action", "formaction", "ping", "background", "poster", "data"].includes(name))
      return false;
    if (name === "style") return !/url\(|expression|@import/i.test(value);
    if (name === "src")
      return /^(data:(image|audio)\/|blob:)/.test(value) || (element.localName === "script" && isOurs(value));
    if (name !== "href" && name !== "xlink:href") return true;
    if (value.startsWith("#") || value.startsWith("blob:") || (element.localName === "link" && isOurs(value)))
      return true;
    const relation = element.getAttribute("rel") ?? "";
    return /^https?:\/\//i.test(value) && relation.includes("noopener") && relation.includes("noreferrer");
  };
  const look = (element: Element): void => {
    // The page says one thing to browsers without script.
    const isSaid =
      element.localName === "noscript" && element.textContent === "The inspector needs JavaScript.";
    if (!OWN.has(element.localName) && !isSaid) note("element", element);
    if (["script", "link"].includes(element.localName) && element.parentElement?.localName !== "head")
      note("element", element);
    for (const { name, value } of element.attributes)
      if (!isAllowed(element, name, value)) note(`attribute ${name}`, element);
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === "attributes") look(target as Element);
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        look(node);
        for (const element of node.querySelectorAll("*")) look(element);
      }
    }
  }).observe(document, { childList: true, subtree: true, attributes: true });
}

/** What was there that is none of ours, so far, and whether anything ran. */
export function strangeIn(
  page: Page,
): Promise<{ readonly strange: readonly string[]; readonly pwned: unknown }> {
  return page.evaluate(() => {
    const { __strange = ["nobody watched"], __pwned = null } = window as Watching;
    return { strange: __strange, pwned: __pwned };
  });
}
