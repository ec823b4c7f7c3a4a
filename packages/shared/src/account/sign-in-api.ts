/**
 * Bodies of the sign-in routes: providers, sign-ins, second factor, invitations, resets, and the
 * scopes of API keys.
 */
import { z } from 'zod'
import { emailAddress, personName } from './account-fields.ts'
import { role } from './role.ts'

/** An administrator's password is always accepted: the fallback when a provider is unavailable. */
const localSignIn = z.enum(['all', 'admins'])
export type LocalSignIn = z.infer<typeof localSignIn>

/** `GET /api/sign-in/providers` (public): the content of the sign-in page. */
export const signInWays = z.object({
  /** `admins`: the form of address and password is only for administrators. */
  local: localSignIn,
  providers: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      /** False: its discovery has not been read yet. A sign-in attempt reads it again. */
      ready: z.boolean(),
    }),
  ),
  /** True if password resets by mail are possible. */
  reset: z.boolean(),
})
export type SignInWays = z.infer<typeof signInWays>

/** The page's target afterwards: a path of this Sandlot. Default `/`. */
const returnTo = z.string().max(2_000).optional()

/**
 * `POST /api/sign-in/providers/:id` (public) → `{url}`, which the page opens. The provider
 * redirects to `returnTo`, or to `/sign-in?problem=<id>`. Accepts the `invitation`.
 */
export const beginSignInRequest = z.strictObject({
  returnTo,
  invitation: z.string().min(1).max(200).optional(),
})
/**
 * `POST /api/sign-in/providers/:id/link` (cookie) → `{url}`: links the provider to the signed-in
 * account. Redirects to `returnTo`, or to `returnTo?problem=<id>`.
 */
export const linkProviderRequest = z.strictObject({
  returnTo,
  /** Required if the account has one. */
  password: z.string().max(128).optional(),
})
export const signInUrl = z.object({ url: z.string() })

/**
 * `GET /api/sign-in/problems/:id` (public), for ten minutes: the reason of a provider's failed
 * sign-in.
 */
export const signInProblem = z.object({ message: z.string() })

/** `POST /api/sign-out` → 204, or 200 with the address that ends it at the provider too. */
export const signedOut = z.object({ url: z.string() })

/**
 * `POST /api/sign-in` answers this instead of `Me` for an account with a second factor: then `POST
 * /api/sign-in/code` within ten minutes → `Me`.
 */
export const secondFactorWanted = z.object({ secondFactor: z.literal(true) })
/** `code`: six digits, or one of the recovery codes. */
export const secondFactorRequest = z.strictObject({ code: z.string().min(1).max(50) })

/** `GET /api/account/ways` (cookie): the signed-in user's ways to sign in. */
export const accountWays = z.object({
  /** False: only through a provider. */
  password: z.boolean(),
  secondFactor: z.boolean(),
  /** `DELETE /api/account/providers/:id` → 204; `conflict` for the only way to sign in. */
  providers: z.array(z.object({ id: z.string(), name: z.string(), linkedAt: z.number() })),
})
export type AccountWays = z.infer<typeof accountWays>

/**
 * `POST /api/account/second-factor` (cookie) → `NewSecondFactor`; active after `POST
 * /api/account/second-factor/confirm` with a code (→ 204). `POST
 * /api/account/second-factor/disable` (`secondFactorRemoval`) → 204. An administrator removes a
 * user's: `DELETE /api/users/:id/second-factor` → 204.
 */
export const secondFactorRemoval = z.strictObject({
  password: z.string().min(1).max(128),
  code: secondFactorRequest.shape.code,
})
export const secondFactorPassword = z.strictObject({ password: z.string().min(1).max(128) })
export const newSecondFactor = z.object({
  /** `otpauth://totp/…`, for a QR code; the secret is its parameter `secret`. */
  uri: z.string(),
  /** Shown only once. Each is valid for one sign-in. */
  recoveryCodes: z.array(z.string()),
})
export type NewSecondFactor = z.infer<typeof newSecondFactor>

/** One sign-in of a person. */
const signInEntry = z.object({
  id: z.string(),
  /** The sign-in of this request. */
  current: z.boolean(),
  /** The browser's own description, for example “Firefox on Linux”. */
  device: z.string(),
  address: z.string().nullable(),
  /** Name of the provider; null: by password. */
  provider: z.string().nullable(),
  since: z.number(),
  lastUsedAt: z.number(),
})
export type SignInEntry = z.infer<typeof signInEntry>
/**
 * `GET /api/account/sign-ins` (cookie), last used first. `DELETE /api/account/sign-ins/:id` → 204;
 * `DELETE /api/account/sign-ins` → 204: all others.
 */
export const signInEntries = z.object({ signIns: z.array(signInEntry) })

// ── API keys
// ────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Scopes of a key. `chat`: send messages, change chats and settings; `read`: everything that
 * changes nothing, except files; `files`: the files of the sandbox and uploads; `exec`: run
 * commands directly; `admin`: administration, if its owner is an administrator.
 */
export const keyScope = z.enum(['chat', 'read', 'files', 'exec', 'admin'])
export type KeyScope = z.infer<typeof keyScope>
/** Scopes of a key made without any. */
export const DEFAULT_KEY_SCOPES: readonly KeyScope[] = ['chat', 'read', 'files', 'exec']

// ── Invitations
// ────────────────────────────────────────────────────────────────────────────────────────────

/** `POST /api/invitations` (administrators) → 201 with a `NewInvitation`. */
export const newInvitationRequest = z.strictObject({
  role: role.default('member'),
  /** Ids. */
  teams: z.array(z.string().max(64)).max(100).default([]),
  /** Only this address can accept it; absent: any. */
  email: z.email().max(254).optional(),
  /** Default: a week. */
  expiresInHours: z
    .number()
    .int()
    .min(1)
    .max(24 * 90)
    .default(24 * 7),
})
const invitation = z.object({
  id: z.string(),
  role,
  teams: z.array(z.string()),
  email: z.string().nullable(),
  createdAt: z.number(),
  /** The administrator's name. */
  createdBy: z.string(),
  expiresAt: z.number(),
  /** The invited user's name; null: not used yet. */
  usedBy: z.string().nullable(),
})
export type Invitation = z.infer<typeof invitation>
/** `url` is shown only once: `/invitation?token=…`. */
export const newInvitation = invitation.extend({ url: z.string() })
export type NewInvitation = z.infer<typeof newInvitation>
/** `GET /api/invitations` (administrators), newest first. `DELETE /api/invitations/:id` → 204. */
export const invitationList = z.object({ invitations: z.array(invitation) })

/** `POST /api/invitations/look` (public) → `InvitationOffer`: the content of the link's page. */
export const invitationLook = z.strictObject({ token: z.string().min(1).max(200) })
export const invitationOffer = z.object({
  role,
  email: z.string().nullable(),
  /** The inviting administrator. */
  createdBy: z.string(),
  expiresAt: z.number(),
})
export type InvitationOffer = z.infer<typeof invitationOffer>
/** `POST /api/invitations/accept` (public) → `Me`, signed in. */
export const acceptInvitationRequest = z.strictObject({
  token: z.string().min(1).max(200),
  name: personName,
  email: emailAddress,
  password: z.string().min(8).max(128),
})

// ── Resets
// ────────────────────────────────────────────────────────────────────────────────────────────

/** `POST /api/users/:id/password` (administrators) → the new password, shown only once. */
export const newPassword = z.object({ password: z.string() })
/**
 * `POST /api/reset` (public) → 204, also for an unknown address; `not_implemented` if no mail can
 * be sent. The mail links to `/reset?token=…`.
 */
export const resetRequest = z.strictObject({ email: z.string().min(1).max(254) })
/** `POST /api/reset/password` (public) → 204. All sign-ins of the user end. */
export const resetPasswordRequest = z.strictObject({
  token: z.string().min(1).max(200),
  password: z.string().min(8).max(128),
})
