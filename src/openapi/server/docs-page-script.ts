/** A way of telling an API who is calling, as the API page asks for it. */
export interface PageCredential {
  /** What people know it as. */
  readonly label: string;
  readonly header: string;
  /** What stands before it in that header. */
  readonly prefix: string;
}

/** Starts swagger-ui; left to itself, it would have the document checked by a server of its makers. */
export function swaggerScript(documentUrl: string, credentials: readonly PageCredential[]): string {
  const settings = { url: documentUrl, dom_id: "#api", deepLinking: true, validatorUrl: null };
  const { url, ...shown } = settings;
  const own = `const url = ${JSON.stringify(url)};
const settings = ${JSON.stringify(shown)};
${SHOW}`;
  if (credentials.length === 0)
    return `${own}fetch(url).then(async (response) => show(await response.json(), {}));\n`;
  return `${own}const ways = ${JSON.stringify(credentials)};
${SIGN_IN}`;
}

/** Shows the document; an API that is served beside it is called where the page came from, under whatever name and path that is. */
const SHOW = `function show(spec, more) {
  const base = new URL(".", new URL(url, location.href)).href.replace(/\\/$/, "");
  const servers = spec["x-waybill"]?.base === "." ? [{ url: base }] : spec.servers;
  SwaggerUIBundle({ ...settings, ...more, spec: { ...spec, servers } });
}
`;

/**
 * Asks for a credential where the document is not shown without one. It stays in this tab, and goes with every request to the
 * server that the page came from, and with no other; what is entered in swagger-ui itself comes first.
 */
const SIGN_IN = `const KEY = "waybill-credential " + location.pathname;
const form = document.getElementById("sign-in");
const fault = document.getElementById("sign-in-fault");
let held = readHeld();

function readHeld() {
  try {
    const { way, value } = JSON.parse(sessionStorage.getItem(KEY));
    return ways[way] === undefined || typeof value !== "string" ? undefined : { way, value };
  } catch {
    return undefined;
  }
}

function addTo(headers) {
  if (held === undefined) return headers;
  const { header, prefix } = ways[held.way];
  const isThere = Object.keys(headers).some((name) => name.toLowerCase() === header);
  return isThere ? headers : { ...headers, [header]: prefix + held.value };
}

async function open() {
  const tried = held;
  const response = await fetch(url, { headers: addTo({}) }).catch(() => undefined);
  const isRefused = response === undefined ? tried !== undefined : response.status === 401;
  form.hidden = !isRefused;
  if (!isRefused) return show(await response?.json(), { requestInterceptor });
  held = undefined;
  sessionStorage.removeItem(KEY);
  fault.hidden = tried === undefined;
  form.elements.value.focus();
}

function requestInterceptor(request) {
  const isOurs = new URL(request.url, location.href).origin === location.origin;
  if (isOurs) request.headers = addTo(request.headers ?? {});
  return request;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  held = { way: Number(form.elements.way.value), value: form.elements.value.value.trim() };
  sessionStorage.setItem(KEY, JSON.stringify(held));
  form.elements.value.value = "";
  open();
});

open();
`;
