import {
  ICON,
  LOGIN_STYLE,
  LOGIN_STYLE_HASH,
  SCRIPT,
  SCRIPT_HASH,
  STYLE,
  STYLE_HASH,
} from "./assets.generated.ts";
import type { DashboardContext } from "./forms.tsx";

// The names of assets contain a hash of their content, so that browsers may keep them for ever.

const FOLDER = "/_weir/assets";
/** The assets of the log-in page, which needs no session. */
const LOGIN_FOLDER = "/_weir/login";

interface Asset {
  readonly type: string;
  readonly content: string;
}

const CSS = "text/css; charset=UTF-8";

const ASSETS: Readonly<Record<string, Asset>> = {
  [`${SCRIPT_HASH}.js`]: { type: "text/javascript; charset=UTF-8", content: SCRIPT },
  [`${STYLE_HASH}.css`]: { type: CSS, content: STYLE },
  [`${STYLE_HASH}.svg`]: { type: "image/svg+xml", content: ICON },
};

/** The addresses of the assets. */
export const assetPaths = {
  script: `${FOLDER}/${SCRIPT_HASH}.js`,
  style: `${FOLDER}/${STYLE_HASH}.css`,
  loginStyle: `${LOGIN_FOLDER}/${LOGIN_STYLE_HASH}.css`,
  icon: `${FOLDER}/${STYLE_HASH}.svg`,
} as const;

/** Answers with an asset that needs a session. */
export function assetResponse(c: DashboardContext) {
  const name = c.req.param("name") ?? "";
  const asset = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  return asset ? respond(c, asset) : c.notFound();
}

/** Answers with the style sheet of the log-in page. */
export function loginStyleResponse(c: DashboardContext) {
  if (c.req.path !== assetPaths.loginStyle) return c.notFound();
  return respond(c, { type: CSS, content: LOGIN_STYLE });
}

function respond(c: DashboardContext, { type, content }: Asset) {
  return c.body(content, 200, {
    "Content-Type": type,
    "Cache-Control": "private, max-age=31536000, immutable",
  });
}
