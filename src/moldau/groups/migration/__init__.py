"""Groups between the two protocols: conversion both ways, and classic members of consumer groups."""
