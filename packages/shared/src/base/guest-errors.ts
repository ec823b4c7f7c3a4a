/** Errors for guests who ask for what only members have. */
export const GUEST_ERRORS = {
  chats: 'Guests take part in chats of others and have none of their own.',
  files: 'Guests have no files of their own.',
  projects: 'Guests take part in chats of others and have no projects.',
  sandbox: 'Guests have no sandbox of their own.',
  servers: 'Guests have no MCP servers.',
  shares: 'Guests take part in what is shared with them; they share nothing.',
  usage: 'A guest has no usage of their own: it counts for the owner of the chat.',
} as const
