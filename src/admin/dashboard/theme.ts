import type { Context } from "hono";
import { getCookie, setCookie } from "hono/cookie";

/** The themes, with the drawings of their buttons. */
export const THEMES = [
  {
    id: "auto",
    label: "Theme of the system",
    path: "M8 1a7 7 0 1 1 0 14zM8 1a7 7 0 0 0 0 14v-1.5a5.5 5.5 0 0 1 0-11z",
  },
  {
    id: "light",
    label: "Light theme",
    path: "M8 4.5a3.5 3.5 0 1 1 0 7a3.5 3.5 0 1 1 0-7zM7.3 0h1.4v3H7.3zM7.3 13h1.4v3H7.3zM0 7.3h3v1.4H0zM13 7.3h3v1.4h-3zM1.9 2.9l1-1l2.1 2.1l-1 1zM11 12l1-1l2.1 2.1l-1 1zM2.9 14.1l-1-1L4 11l1 1zM12 5l-1-1l2.1-2.1l1 1z",
  },
  { id: "dark", label: "Dark theme", path: "M6 1a7 7 0 1 0 9 9a6 6 0 0 1-9-9z" },
] as const;

export type Theme = (typeof THEMES)[number]["id"];

const COOKIE = "weir-theme";
const YEAR_S = 365 * 86_400;

/** Returns the theme that the operator has chosen. */
export function readTheme(c: Context): Theme {
  return themeOf(getCookie(c, COOKIE));
}

/** Keeps the operator's choice in a cookie. The cookie is no secret and selects nothing else. */
export function keepTheme(c: Context, chosen: string): void {
  setCookie(c, COOKIE, themeOf(chosen), {
    path: "/_weir",
    httpOnly: true,
    secure: true,
    sameSite: "Lax",
    maxAge: YEAR_S,
  });
}

function themeOf(id: string | undefined): Theme {
  return THEMES.find((theme) => theme.id === id)?.id ?? "auto";
}
