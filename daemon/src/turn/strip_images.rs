//! Removes images from conversations for models that cannot see, and tells the model so.

use loopd_kernel::model::{ModelMessage, Part};

/// Replaces an image in a user's message.
const NOTE: &str = "[An image was attached here. This model cannot see images.]";

/// Replaces an image that is one too many.
const TOO_MANY: &str =
    "[An image was here. This model takes only the newest images of a conversation.]";

/// The beginning of a user's own message; messages with images of tools have no date.
const USER_MESSAGE: &str = "<current_datetime>";

/// Removes the images of tools, and replaces images that users attached by a note.
pub(super) fn strip_images(messages: &mut Vec<ModelMessage>) {
    messages.retain(|message| !is_found_image(message));
    for message in messages {
        let ModelMessage::User(parts) = message else {
            continue;
        };
        for part in parts {
            if matches!(part, Part::Image { .. }) {
                *part = Part::Text(NOTE.to_owned());
            }
        }
    }
}

/// Leaves only the newest images, and replaces the others by a note.
pub(super) fn keep_newest(messages: &mut [ModelMessage], most: u64) {
    let mut left = most;
    for message in messages.iter_mut().rev() {
        let ModelMessage::User(parts) = message else {
            continue;
        };
        for part in parts.iter_mut().rev() {
            if !matches!(part, Part::Image { .. }) {
                continue;
            }
            match left.checked_sub(1) {
                Some(rest) => left = rest,
                None => *part = Part::Text(TOO_MANY.to_owned()),
            }
        }
    }
}

/// Returns whether a message holds an image of a tool. Such a message has only the image, with at
/// most a label before it.
fn is_found_image(message: &ModelMessage) -> bool {
    let ModelMessage::User(parts) = message else {
        return false;
    };
    match parts.as_slice() {
        [Part::Image { .. }] => true,
        [Part::Text(label), Part::Image { .. }] => !label.starts_with(USER_MESSAGE),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.to_owned())
    }

    fn image() -> Part {
        Part::Image {
            media_type: "image/png".to_owned(),
            base64: "AAAA".to_owned(),
        }
    }

    #[test]
    fn the_newest_images_are_kept() {
        let all = [
            ModelMessage::User(vec![text("one"), image()]),
            ModelMessage::User(vec![text("two"), image(), image()]),
        ];
        let mut messages = all.clone();
        keep_newest(&mut messages, 5);
        assert_eq!(messages, all);
        keep_newest(&mut messages, 1);
        assert_eq!(
            messages,
            [
                ModelMessage::User(vec![text("one"), text(TOO_MANY)]),
                ModelMessage::User(vec![text("two"), text(TOO_MANY), image()]),
            ]
        );
    }

    #[test]
    fn images_of_tools_are_removed_and_attached_images_become_a_note() {
        let asked = "<current_datetime>now</current_datetime>\n\nwhat is it?";
        let mut messages = vec![
            ModelMessage::User(vec![text(asked), text("a.png"), image()]),
            ModelMessage::User(vec![text(asked), image()]),
            ModelMessage::User(vec![text("Image file at path /a.png"), image()]),
            ModelMessage::User(vec![image()]),
            ModelMessage::User(vec![text("bye")]),
        ];
        strip_images(&mut messages);
        assert_eq!(
            messages,
            [
                ModelMessage::User(vec![text(asked), text("a.png"), text(NOTE)]),
                ModelMessage::User(vec![text(asked), text(NOTE)]),
                ModelMessage::User(vec![text("bye")]),
            ]
        );
    }
}
