import { useState } from "preact/hooks";
import type { LiveStatus } from "./connection/live.ts";
import { Badge, type Tone } from "./parts/badge.tsx";
import { Logo } from "./parts/logo.tsx";
import { titled } from "./parts/show.ts";
import { type Route, toHash, VIEWS } from "./router.ts";
import { useLive, useSession } from "./session.ts";
import { applyTheme, readTheme, THEMES, type Theme } from "./theme.ts";

/** What stands above every view: the gateway, the views, whether the page hears what happens, the theme. */
export function Bar({ route, onLeave }: { readonly route: Route; readonly onLeave: () => void }) {
  const { hello } = useSession();
  return (
    <header class="bar">
      <button type="button" class="hidden-text" onClick={skip}>
        Skip to the view
      </button>
      <div class="brand">
        <Logo />
        <h1 class="name cut" title={hello.name}>
          {hello.name}
        </h1>
        <span class="soft small">{hello.version}</span>
      </div>
      <nav aria-label="Views">
        <ul>
          {VIEWS.map((view) => (
            <li key={view}>
              <a href={toHash(view)} aria-current={route.view === view ? "page" : undefined}>
                {titled(view)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="aside">
        <LiveBadge />
        {hello.isAuthOn && (
          <button type="button" class="quiet" onClick={onLeave} title="Forget the token of this tab">
            {hello.subject ?? "Token"} · leave
          </button>
        )}
        <ThemeChoice />
      </div>
    </header>
  );
}

function skip(): void {
  document.getElementById("view")?.focus();
}

const STATES: Readonly<Record<LiveStatus, readonly [Tone, string, string]>> = {
  connecting: ["plain", "connecting", "Asking the gateway."],
  open: ["ok", "live", "Calls are shown as they happen."],
  lost: ["bad", "lost", "The gateway does not answer; trying again."],
  refused: ["bad", "refused", "The gateway refuses this token. Leave and enter another."],
};

function LiveBadge() {
  const { status } = useLive();
  const [tone, word, meaning] = STATES[status];
  return (
    <span role="status">
      <Badge tone={tone} title={meaning} sign="●">
        {word}
      </Badge>
    </span>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(readTheme);
  const choose = (event: Event): void => {
    const wanted = (event.currentTarget as HTMLSelectElement).value as Theme;
    applyTheme(wanted);
    setTheme(wanted);
  };
  return (
    <label>
      <span class="hidden-text">Theme</span>
      <select value={theme} onChange={choose}>
        {THEMES.map((known) => (
          <option key={known} value={known}>
            {titled(known)}
          </option>
        ))}
      </select>
    </label>
  );
}
