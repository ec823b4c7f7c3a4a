/* The service worker: shows notices that the service pushes, and opens their chats. It caches nothing. */

self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('push', (event) => event.waitUntil(show(event.data)))
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(event.notification.data?.url))
})

/* Browsers want something shown for every push, so one that cannot be read says that there is something. */
async function show(data) {
  const { title = 'Sandlot has something for you', body = '', tag = 'sandlot', url = '/' } = messageOf(data)
  // Of the same tag there is one: a newer notice of a chat replaces the older one.
  await self.registration.showNotification(title, { body, tag, icon: '/favicon.svg', data: { url } })
}

function messageOf(data) {
  try {
    return data?.json() ?? {}
  } catch {
    return {}
  }
}

async function open(path = '/') {
  const url = new URL(path, self.location.origin)
  if (url.origin !== self.location.origin) return
  const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const there = pages.find((page) => new URL(page.url).pathname === url.pathname)
  // Another page of ours stays as it is: a message may be half written in it.
  await (there === undefined ? self.clients.openWindow(url.href) : there.focus())
}
