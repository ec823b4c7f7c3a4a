import type { ServerScope } from '@sandlot/shared/admin/mcp-servers'

/** The same actions on servers of a person and of the deployment. */
export const SERVER_ACTIONS = {
  own: {
    list: 'listServers',
    add: 'addServer',
    change: 'changeServer',
    remove: 'removeServer',
    test: 'testServer',
    signIn: 'signInToServer',
    signOut: 'signOutOfServer',
  },
  deployment: {
    list: 'listEverybodysServers',
    add: 'addEverybodysServer',
    change: 'changeEverybodysServer',
    remove: 'removeEverybodysServer',
    test: 'testEverybodysServer',
    signIn: 'signInToEverybodysServer',
    signOut: 'signOutOfEverybodysServer',
  },
} as const satisfies Record<ServerScope, object>
