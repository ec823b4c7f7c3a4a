/** The OAuth redirect of MCP servers. ai-agent finishes the sign-in; the page shows the result. */
import { EXT, mcpSignInResult } from '@sandlot/shared/acp/meta'
import { MCP_SIGN_IN_PATH, publishedMcpClient } from '@sandlot/shared/base/mcp-client'
import { type ServerScope, serverScope } from '@sandlot/shared/admin/mcp-servers'
import { Hono } from 'hono'
import { deleteCookie, getCookie } from 'hono/cookie'
import { agentUserOf } from '../../auth/agent-user.ts'
import { html } from 'hono/html'
import type { AppEnv, Parts } from '../context.ts'
import { requireCaller, requireSignIn } from '../request.ts'

/** Says from which list of servers a person went to sign in. */
export const SIGN_IN_FROM = 'sandlot_mcp_from'
/** A link is valid so long. */
export const SIGN_IN_SECONDS = 600
const SECTION: Record<ServerScope, string> = { own: 'servers', deployment: 'mcp' }

export function mcpRoutes(parts: Parts): Hono<AppEnv> {
  const routes = new Hono<AppEnv>()
  const { publicUrl } = parts.config
  if (publicUrl !== undefined) {
    // For authorization servers, which have no session: the content is public.
    routes.get('/client.json', (c) => c.json(publishedMcpClient(publicUrl)))
  }
  return routes.use(requireCaller(parts)).get('/', async (c) => {
    requireSignIn(c)
    const answer = new URL(c.req.url).search.slice(1)
    const result = mcpSignInResult.parse(
      await parts.agent.request(EXT.mcpSignIn, { user: agentUserOf(c.var.caller), answer }),
    )
    const from = serverScope.safeParse(getCookie(c, SIGN_IN_FROM)).data
    if (from !== undefined) {
      deleteCookie(c, SIGN_IN_FROM, { path: MCP_SIGN_IN_PATH })
      if ('server' in result)
        return c.redirect(`/settings/${SECTION[from]}?connected=${encodeURIComponent(result.server)}`, 303)
    }
    const text =
      'server' in result
        ? `${result.server} is connected. You can close this page and go on in the chat.`
        : result.problem
    // The address holds a code: it is kept out of caches and, by the referrer policy, from other
    // sites.
    c.header('cache-control', 'no-store')
    return c.html(
      html`<!doctype html>
        <html lang="en">
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width" />
          <title>Sandlot</title>
          <body style="font: 1rem system-ui; max-width: 36rem; margin: 15vh auto; padding: 0 1rem">
            <p>${text}</p>
            ${
              from === undefined
                ? html`<p><a href="/">Back to the chat</a></p>`
                : html`<p><a href="/settings/${SECTION[from]}">Back to the MCP servers</a></p>`
            }
          </body>
        </html>`,
      'server' in result ? 200 : 400,
    )
  })
}
