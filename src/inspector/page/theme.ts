import { browserStore } from "./operations/input-history.ts";

/** How the page looks; `auto` follows the system. */
export type Theme = "auto" | "light" | "dark";

const KEY = "waybill.theme";
export const THEMES: readonly Theme[] = ["auto", "light", "dark"];

/** The theme that was chosen last. */
export function readTheme(): Theme {
  const kept = browserStore("localStorage")?.getItem(KEY);
  return THEMES.find((theme) => theme === kept) ?? "auto";
}

/** Shows a theme, and remembers it. */
export function applyTheme(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === "auto" ? "" : theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing.
  }
}
