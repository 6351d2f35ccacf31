// Package replicas tests clusters of real processes that replicate an object: members that are
// killed and come back, empty or with their journals, that stop for a while, whose links are cut, and that suspect each
// other by mistake. Every operation must have the fate that its user was told, and only that. It
// has no code but its tests.
package replicas
